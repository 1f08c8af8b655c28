//go:build linux

package fault

// changes are the changes that the history lists, the newest first.
func (g *ground) changes() []change { return g.history() }

// toolhost runs a command of the program on the ground, which has to succeed.
func (g *ground) toolhost(command string, flags ...string) string {
	g.T.Helper()
	out, err := g.Run(command, flags...)
	if err != nil {
		g.T.Fatal(err)
	}
	return string(out)
}
