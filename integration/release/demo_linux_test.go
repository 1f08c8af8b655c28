package release

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

//go:generate go test . -run TestReadmeDemo -update

// TestReadmeDemo holds the transcript of the README against what toolhost demo prints, within the minute that a newcomer gives it.
func TestReadmeDemo(t *testing.T) {
	if !host.Contained(t) {
		t.Skip("the transcript is of a machine that can contain commands")
	}
	began := time.Now()
	text := demo(t)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	generated(t, "../../README.md", "demo", "```console\n$ toolhost demo\n"+masked(text)+"```\n")
}

// demo runs the demo without a terminal, on a machine that how arranges.
func demo(t *testing.T, how ...func(*exec.Cmd)) string {
	t.Helper()
	home := host.TempDir(t)
	cmd := exec.CommandContext(t.Context(), host.Binary, "demo")
	cmd.Dir, cmd.Env = home, append(host.CleanEnv(home), "TMPDIR=/tmp")
	for _, arrange := range how {
		arrange(cmd)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	left, err := os.ReadDir(home)
	if err != nil || len(left) != 1 || left[0].Name() != ".cache" { // of the trial of the sandbox
		t.Errorf("the demo leaves %v in the home directory, %v", left, err)
	}
	return string(out)
}

// masked replaces what differs from run to run by an ellipsis, as TestPages reads it.
func masked(text string) string {
	for _, m := range []string{`/tmp/toolhost-demo-\d+`, `process:[0-9a-f]{12}`, `\b[a-z2-7]{12}\b`,
		`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, `(?m)^(held   )?Exit code \d+$`, `(?m)curl: \(\d+\).*$`, `(?m)^Next: .*$`} {
		text = regexp.MustCompile(m).ReplaceAllStringFunc(text, func(found string) string {
			for _, kept := range []string{"held   Exit code ", "Exit code ", "Next: "} {
				if strings.HasPrefix(found, kept) {
					return kept + "…"
				}
			}
			return "…"
		})
	}
	return text
}

// TestDemoPlaces runs the demo where something is missing: it ends, says so, and holds all the same.
func TestDemoPlaces(t *testing.T) {
	for _, tt := range samples.Of([]struct {
		name string
		how  func(*testing.T) func(*exec.Cmd)
		want []string
	}{
		{"no git", func(t *testing.T) func(*exec.Cmd) {
			return func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "PATH="+host.TempDir(t)) }
		}, []string{"Git:     none here", "Allow it? [y/N] n", "The files are as before."}},
		{"no namespaces", func(t *testing.T) func(*exec.Cmd) { return host.WithoutNamespaces(t) },
			[]string{"; toolhost doctor says", "rm -rf ~ is left out", "The files are as before."}},
	}, 1) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := demo(t, tt.how(t))
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing:\n%s", want, text)
				}
			}
		})
	}
}
