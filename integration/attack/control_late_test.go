//go:build slow && unix

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackControlLate has links to settings appear, and change, while commands run that would make use of it.
func TestAttackControlLate(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	attackControlLate(t, controlBackend{})
	if os.Geteuid() == 0 {
		t.Run("user", func(t *testing.T) { attackControlLate(t, controlBackend{user: ordinaryUser}) })
	}
}

func attackControlLate(t *testing.T, b controlBackend) {
	layout := func(name string) controlLayout {
		for _, l := range controlLayouts {
			if l.name == name {
				return l
			}
		}
		t.Fatalf("there is no layout %q", name)
		return controlLayout{}
	}
	start := func(t *testing.T, l controlLayout, prepare func(w *world)) (*world, *witness) {
		w := l.put(t)
		if prepare != nil {
			prepare(w)
		}
		w.through = b.through
		if b.user != 0 {
			w.giveTo(t, b.user)
		}
		return w, w.host(t, host.StdioModern, "--root", w.ws)
	}
	// end looks at whether anything ran on the host, now and after a command has ended.
	end := func(t *testing.T, w *world, h *witness) {
		t.Helper()
		for i := range 3 {
			h.call(t, "Read", `{"file_path":"other/f.txt"}`, fmt.Sprint("end", i))
			h.call(t, "Bash", `{"command":"true"}`, fmt.Sprint("end bash", i))
		}
		if _, err := os.Lstat(filepath.Join(w.root, "pwned")); err == nil {
			t.Error("something ran outside of the sandbox")
		}
		host.Must(t, h.Stop())
	}
	const loop = `{"command":"touch other/began; end=$((SECONDS+60)); while [ $SECONDS -lt $end ] && ! [ -e other/stop ]; do %s; done","run_in_background":true}`
	begin := func(t *testing.T, w *world, h *witness, command string) {
		t.Helper()
		if said := h.call(t, "Bash", fmt.Sprintf(loop, command), "loop"); !said.ok {
			t.Fatalf("the task was not started: %s", said.text)
		}
		waitFor(t, filepath.Join(w.ws, "other", "began"))
	}
	t.Run("a link appears", func(t *testing.T) {
		w, h := start(t, controlLayout{files: []string{"ws/dot/settings.json"}},
			func(w *world) { host.Must(t, os.MkdirAll(filepath.Join(w.home, ".claude"), 0o755)) })
		begin(t, w, h, "cp evil/settings.json dot/settings.json")
		host.Must(t, os.Symlink(filepath.Join(w.ws, "dot", "settings.json"), filepath.Join(w.home, ".claude", "settings.json")))
		for i := range 5 {
			h.call(t, "Read", `{"file_path":"other/f.txt"}`, fmt.Sprint("while", i))
		}
		host.Must(t, os.WriteFile(filepath.Join(w.ws, "other", "stop"), nil, 0o644))
		path := filepath.Join(w.ws, "dot", "settings.json")
		h.call(t, "Bash", `{"command":"true"}`, "after")
		host.Must(t, os.WriteFile(path, []byte("{}\n"), 0o644))
		h.call(t, "Bash", `{"command":`+quotedText(veiledName("dot/settings.json")+`cp evil/settings.json "$f"; rm -f "$f"; mv dot gone`)+`}`, "again")
		h.call(t, "Write", `{"file_path":"dot/settings.json","content":"x"}`, "write")
		if text, err := os.ReadFile(path); err != nil || string(text) != "{}\n" {
			t.Errorf("it holds %q, %v", text, err)
		}
		end(t, w, h)
	})
	t.Run("a middle link is replaced all the time", func(t *testing.T) {
		w, h := start(t, layout("user chain of directories"), nil)
		begin(t, w, h, "ln -sfn evil current")
		for i := range 10 {
			h.call(t, "Read", `{"file_path":"other/f.txt"}`, fmt.Sprint("while", i))
		}
		host.Must(t, os.WriteFile(filepath.Join(w.ws, "other", "stop"), nil, 0o644))
		end(t, w, h)
	})
	for name, command := range map[string]string{
		"a directory becomes a link":         `ln -s evil "$f"`,
		"a directory becomes a link outside": `mkdir -p "$TMPDIR/e"; cp evil/settings.json "$TMPDIR/e"; ln -s "$TMPDIR/e" "$f"`,
		"a directory is moved there":         `cp -r evil e2; mv e2 "$f"`,
		"a link to a link":                   `ln -s evil one; ln -s one two; ln -s two "$f"`,
		"a link in a directory":              `mkdir "$f"; ln -s ../evil/settings.json "$f/settings.json"`,
	} {
		t.Run(name, func(t *testing.T) {
			w, h := start(t, controlLayout{}, nil)
			h.call(t, "Bash", `{"command":`+quotedText(veiledName(".claude")+command)+`}`, name)
			if text, err := os.ReadFile(filepath.Join(w.ws, ".claude", "settings.json")); err == nil {
				t.Errorf("there are settings: %s", text)
			}
			end(t, w, h)
		})
	}
	t.Run("a hard link appears", func(t *testing.T) {
		w, h := start(t, controlLayout{files: []string{"home/.claude/settings.json"}}, nil)
		h.call(t, "Bash", `{"command":"true"}`, "first")
		host.Must(t, os.Link(filepath.Join(w.home, ".claude", "settings.json"), filepath.Join(w.ws, "other", "name")))
		h.call(t, "Bash", `{"command":`+quotedText(veiledName("other/name")+`cat evil/settings.json > "$f"`)+
			`}`, "write")
		if text, err := os.ReadFile(filepath.Join(w.home, ".claude", "settings.json")); err != nil ||
			string(text) != "{}\n" {
			t.Errorf("it holds %q, %v", text, err)
		}
		end(t, w, h)
	})
	t.Run("a link to what is not there yet", func(t *testing.T) {
		w, h := start(t, controlLayout{}, func(w *world) { host.Must(t, os.MkdirAll(filepath.Join(w.home, ".claude"), 0o755)) })
		h.call(t, "Bash", `{"command":"true"}`, "first")
		host.Must(t, os.Symlink(filepath.Join(w.ws, "dot", "new.json"), filepath.Join(w.home, ".claude", "settings.json")))
		host.Must(t, os.MkdirAll(filepath.Join(w.ws, "dot"), 0o777))
		host.Must(t, os.Chmod(filepath.Join(w.ws, "dot"), 0o777))
		for i, c := range [][2]string{
			{"Write", `{"file_path":"dot/new.json","content":"{}"}`},
			{"Bash", `{"command":"cp evil/settings.json dot/new.json"}`},
			{"Bash", `{"command":` + quotedText(veiledName("dot/new.json")+`cp evil/settings.json "$f"`) + `}`},
			{"Bash", `{"command":` + quotedText(veiledName("dot/new.json")+`ln -s ../evil/settings.json "$f"`) + `}`},
			{"Bash", `{"command":` + quotedText(veiledName("dot")+`mv "$f" gone; cp -r evil "$f"; cp evil/settings.json "$f/new.json"`) + `}`},
		} {
			h.call(t, c[0], c[1], fmt.Sprint(i))
			if text, err := os.ReadFile(filepath.Join(w.home, ".claude", "settings.json")); err == nil {
				t.Fatalf("%s %s: there are settings: %s", c[0], c[1], text)
			}
		}
		end(t, w, h)
	})
}

// waitFor waits until a file is there.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for late := time.Now().Add(host.Patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s does not appear", strings.TrimSpace(path))
		}
	}
}
