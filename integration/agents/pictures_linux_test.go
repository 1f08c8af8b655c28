//go:build slow

package agents

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// maxDrawing is the largest drawing of a terminal, in bytes.
const maxDrawing = 30 << 10

// triedAgent plays an agent that does what was asked, and then harm.
const triedAgent = `#!/bin/sh
echo "● I set the port to 9090 and free some space."
sed -i s/8080/9090/ app.toml
echo "● rm -rf ~/photos"
rm -rf ~/photos
`

//go:generate go test -tags slow -run TestTryPicture$ -pictures ../../cmd/toolhost/docs .

// TestTryPicture draws toolhost try in a terminal for the README, from a real run: go generate ./integration/....
func TestTryPicture(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	host.Must(t, os.RemoveAll(p.Project))
	p.Project = filepath.Join(p.Home, "shop")
	for name, text := range map[string]string{"shop/app.toml": "# the shop\nport = 8080\nhost = \"localhost\"\n",
		"photos/cat.jpg": "cat", "bin/agent": triedAgent} {
		host.WriteIn(t, p.Home, name, text)
	}
	host.Must(t, os.Chmod(filepath.Join(p.Home, "bin/agent"), 0o755))
	host.WriteIn(t, p.Home, ".gitconfig", "[user]\n\tname = t\n\temail = t@example.org\n")
	host.Shell(t, p.Home, p.Project, "git init -q -b main; git add .; git commit -qm first")
	env := []string{"PATH=" + filepath.Join(p.Home, "bin") + ":" + filepath.Dir(host.Binary) + ":" + os.Getenv("PATH"),
		"ENV=" + filepath.Join(p.Home, "prompt")}
	host.WriteIn(t, p.Home, "prompt", "PS1='$ '\n")
	w := newTerminal(t, p, env, "sh")
	for _, step := range []struct{ after, types string }{
		{"$", "toolhost try -- agent 'listen on port 9090'"}, {"iscard?", "a"}, {"takes it back\n$", "ls ~/photos; grep port app.toml"},
	} {
		host.Eventually(t, func() string { return w.lacks([]string{step.after}) })
		w.do("send-keys", "-l", step.types)
		w.do("send-keys", "Enter")
	}
	host.Eventually(t, func() string { return w.lacks([]string{"\nport = 9090\n$"}) })
	screen := strings.ReplaceAll(w.do("capture-pane", "-p", "-e"), p.Home, "/home/you")
	for _, shown := range []string{"Read-only file system", "9090", "[a]pply", "cat.jpg"} {
		if !strings.Contains(screen, shown) {
			t.Errorf("the terminal does not show %q", shown)
		}
	}
	drawn := drawTerminal(screen)
	if err := xml.Unmarshal(drawn, new(struct{})); err != nil || len(drawn) > maxDrawing {
		t.Errorf("the picture has %d bytes, want at most %d: %v", len(drawn), maxDrawing, err)
	}
	if *host.PicturesDir != "" {
		host.Must(t, os.WriteFile(filepath.Join(*host.PicturesDir, "try.svg"), drawn, 0o644))
		return
	}
	if have, err := os.ReadFile("../../cmd/toolhost/docs/try.svg"); err != nil || string(have) != string(drawn) {
		t.Errorf("try.svg shows something else (%v): go generate ./integration/...\n%s", err, screen)
	}
}

// colour matches how a program changes the colour of what follows.
var colour = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// drawTerminal draws the screen of a terminal as SVG. It knows the colours of a diff.
func drawTerminal(screen string) []byte {
	lines := strings.Split(strings.TrimRight(screen, "\n $"), "\n")
	wide := 0
	for _, line := range lines {
		wide = max(wide, len(strings.TrimRight(colour.ReplaceAllString(line, ""), " ")))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">`+"\n", 9*wide+32, 20*len(lines)+30)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`)
	for i, line := range lines {
		fill := "#e6edf3"
		switch {
		case strings.HasPrefix(line, "$ "):
			fill = "#ffffff"
		case strings.Contains(line, "Read-only file system"):
			fill = "#ff7b72"
		}
		for _, m := range colour.FindAllStringSubmatch(line, -1) {
			if c := map[string]string{"31": "#ff7b72", "32": "#7ee787", "36": "#79c0ff",
				"1": "#ffffff"}[m[1]]; c != "" {
				fill = c
			}
		}
		fmt.Fprintf(&b, `<text x="16" y="%d" fill="%s" xml:space="preserve">`, 20*i+30, fill)
		_ = xml.EscapeText(&b, []byte(strings.TrimRight(colour.ReplaceAllString(line, ""), " "))) // a Builder takes all
		fmt.Fprintln(&b, "</text>")
	}
	fmt.Fprintln(&b, "</svg>")
	return []byte(b.String())
}
