package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// behaviourCommand makes the same calls to each program and prints the table of the README from what they did.
func behaviourCommand(args []string) error {
	f := flag.NewFlagSet("bench behaviour", flag.ContinueOnError)
	peers := f.String("peers", "", "the `directory` that integration/bench/peers has filled")
	binary := f.String("binary", "", "take this `file` and do not build the host")
	if err := f.Parse(args); err != nil {
		return err
	}
	return scratch(func(dir string) error {
		r := &peersRun{peers: *peers, binary: *binary}
		built, err := r.built(dir)
		if err != nil {
			return err
		}
		subjects, err := peerPlaces(*peers).subjects(built)
		if err != nil {
			return err
		}
		return printBehaviour(os.Stdout, dir, subjects)
	})
}

// A subject is a program whose behaviour is looked at: an MCP server, or one that runs a command.
type subject struct {
	*rival
	run []string // the command line that a shell command is appended to, of a program that is no MCP server
}

const secretText = "SECRET=f3a1"

// subjects are the host and the installed peers.
func (p *places) subjects(binary string) ([]subject, error) {
	servers, err := p.servers(binary)
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, r := range servers {
		if r.name != floorName {
			all = append(all, subject{rival: r})
		}
	}
	if path := p.find("desktop-commander"); path != "" {
		all = append(all, subject{rival: &rival{
			name: "Desktop Commander", version: packageVersion(path, "@wonderwhy-er/desktop-commander"),
			argv: []string{path},
			read: func(path string) call { return call{"read_file", map[string]any{"path": path}} },
			edit: func(path, before, after string) call {
				return call{"edit_block", map[string]any{"file_path": path, "old_string": before, "new_string": after}}
			},
			bash: func(command string) call {
				return call{"start_process", map[string]any{"command": command, "timeout_ms": 5000}}
			},
		}})
	}
	if path := p.find("codex"); path != "" {
		all = append(all, subject{
			rival: &rival{name: "Codex's sandbox", version: versionOf(path, "--version")},
			run:   []string{path, "sandbox", "--", "bash", "-c"},
		})
	}
	return all, nil
}

// A trial is one subject at work in a project of its own.
type trial struct {
	subject
	tree, home, outside string
	conn                *server // nil for a program that is no MCP server
}

// behaviours are the rows of the table.
var behaviours = []struct {
	name string
	look func(t *trial) (string, error)
}{
	{"replace a file that changed since it was read", (*trial).replace},
	{"`cat .env`, denied in `.claude/settings.json`", (*trial).readDenied},
	{"a command writes outside the project", (*trial).writeOutside},
	{"a command connects to another host", (*trial).connect},
	{"`setsid sleep 999 &`, after the call", (*trial).stray},
}

func printBehaviour(out io.Writer, dir string, subjects []subject) error {
	table := [][]string{{"call"}}
	for _, s := range subjects {
		table[0] = append(table[0], strings.TrimSpace(s.name+" "+number(s.version)))
	}
	for i, b := range behaviours {
		row := []string{b.name}
		for j, s := range subjects {
			cell, err := s.try(filepath.Join(dir, fmt.Sprintf("%d-%d", i, j)), b.look)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, b.name, err)
			}
			row = append(row, cell)
		}
		table = append(table, row)
	}
	for i, row := range table {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(out, "|"+strings.Repeat("---|", len(row)))
		}
	}
	return nil
}

// number is the first number in what a program prints of its version.
func number(version string) string {
	for _, word := range strings.Fields(version) {
		if word[0] >= '0' && word[0] <= '9' {
			return word
		}
	}
	return ""
}

// try looks at one behaviour of a subject, in a fresh project and home directory.
func (s subject) try(dir string, look func(t *trial) (string, error)) (cell string, err error) {
	t := &trial{subject: s, tree: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"),
		outside: filepath.Join(dir, "outside")}
	for name, text := range map[string]string{
		filepath.Join(t.tree, "a.txt"): "one\n", filepath.Join(t.tree, ".env"): secretText + "\n",
		filepath.Join(t.outside, "x"):                     "",
		filepath.Join(t.tree, ".claude", "settings.json"): `{"permissions":{"deny":["Read(.env)"]}}`,
		filepath.Join(t.home, "x"):                        "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte(text), 0o600)); err != nil {
			return "", err
		}
	}
	if s.run == nil {
		if t.conn, _, err = start(s.command(t.tree, t.home)); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, t.conn.stop()) }()
	}
	return look(t)
}

// shell runs a command and returns what was printed. It reports false for a subject that runs none.
func (t *trial) shell(command string) (out string, ok bool, err error) {
	switch {
	case t.run != nil:
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, t.run[0], append(t.run[1:len(t.run):len(t.run)], command)...)
		cmd.Dir, cmd.WaitDelay = t.tree, time.Second
		cmd.Env = []string{"HOME=" + t.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
		var both bytes.Buffer
		cmd.Stdout, cmd.Stderr = &both, &both
		_ = cmd.Run() // a refusal is a failure too: the effect is looked at
		return both.String(), true, nil
	case t.bash == nil:
		return "", false, nil
	}
	out, err = t.ask(t.bash(command))
	return out, true, err
}

// ask makes a call and returns what its result or its refusal says.
func (t *trial) ask(c call) (string, error) {
	answers, _, err := t.conn.batch(c)
	if err != nil {
		return "", err
	}
	r, err := answers[0].decode()
	if err != nil {
		return err.Error(), nil
	}
	return r.Text(), nil
}

func (t *trial) replace() (string, error) {
	if t.run != nil {
		return "no file tools", nil
	}
	path := filepath.Join(t.tree, "a.txt")
	if _, err := t.ask(t.read(path)); err != nil {
		return "", err
	}
	later := time.Now().Add(time.Minute)
	if err := errors.Join(os.WriteFile(path, []byte("one\nmine\n"), 0o600),
		os.Chtimes(path, later, later)); err != nil {
		return "", err
	}
	if _, err := t.ask(t.edit(path, "one", "two")); err != nil {
		return "", err
	}
	raw, err := os.ReadFile(path)
	return unlessRefused(!bytes.Contains(raw, []byte("two")), "replaced"), err
}

// unlessRefused says what happened, unless the call was refused.
func unlessRefused(refused bool, otherwise string) string {
	if refused {
		return "refused"
	}
	return otherwise
}

func (t *trial) readDenied() (string, error) {
	out, ok, err := t.shell("cat .env")
	if !ok {
		return "no commands", err
	}
	return unlessRefused(!strings.Contains(out, secretText), "printed"), err
}

func (t *trial) writeOutside() (string, error) {
	path := filepath.Join(t.outside, "written")
	_, ok, err := t.shell("echo x > " + path)
	if !ok || err != nil {
		return "", err
	}
	_, err = os.Stat(path)
	return unlessRefused(err != nil, "written"), nil
}

// connect has a command connect to an address of this machine that is not its loopback, as to any other host.
func (t *trial) connect() (string, error) {
	address, err := ownAddress()
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", err
	}
	defer l.Close()
	connected := make(chan struct{})
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
			close(connected)
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	_, ok, err := t.shell(fmt.Sprintf("timeout 5 bash -c 'echo x > /dev/tcp/%s/%s'", address, port))
	if !ok || err != nil {
		return "", err
	}
	select {
	case <-connected:
		return "connects", nil
	default:
		return "refused", nil
	}
}

// ownAddress is an address of this machine that is not its loopback.
func ownAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no address but the loopback")
}

// stray has a command leave a process, which is looked for by a marked argument and killed.
func (t *trial) stray() (string, error) {
	mark := fmt.Sprintf("999.%d", time.Now().UnixNano())
	_, ok, err := t.shell("setsid sleep " + mark + " >/dev/null 2>&1 & sleep 0.3")
	if !ok || err != nil {
		return "", err
	}
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return "", err
	}
	for _, file := range found {
		raw, _ := os.ReadFile(file) // it may have ended
		if !bytes.HasPrefix(raw, []byte("sleep\x00"+mark)) {
			continue
		}
		pid := filepath.Base(filepath.Dir(file))
		return "runs on", exec.Command("kill", pid).Run()
	}
	return "ended", nil
}
