package sandboxpool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/integration/testenv"
)

const (
	kept   = "a secret\n"
	reader = "__reader" // first argument of the test binary as a command that reads
)

// readAsCommand reads each file that it is told to, for a while, and says when it could do so last, in nanoseconds of the
// system's clock; 0 if it never could.
func readAsCommand(args []string) bool {
	if len(args) < 2 || args[1] != reader {
		return false
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println("looking")
		last := int64(0)
		for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
			if text, err := os.ReadFile(lines.Text()); err == nil && string(text) == kept {
				last = time.Now().UnixNano()
			}
		}
		fmt.Println(last)
	}
	return true
}

// watchedSandbox starts the sandbox of a workspace in which keys cannot be read.
func watchedSandbox(tb testing.TB) (cs *Pool, c *Sandbox, ws string) {
	tb.Helper()
	base, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	ws = filepath.Join(base, "ws")
	if err := os.MkdirAll(filepath.Join(ws, "sub"), 0o755); err != nil {
		tb.Fatal(err)
	}
	put(tb, filepath.Join(ws, "sub", "old.key"), kept)
	cs, c = sandboxOf(tb, base, "", "Read(*.key)")
	return cs, c, ws
}

// sandboxOf starts a sandbox for the workspace "ws" in base.
func sandboxOf(tb testing.TB, base, home, deny string) (cs *Pool, c *Sandbox) {
	tb.Helper()
	testenv.NeedsNamespaces(tb)
	policy, err := guard.New(guard.Config{
		Roots: []string{filepath.Join(base, "ws")}, Home: home, Scratch: filepath.Join(base, "scratch", "me"),
		Settings: &settings.Settings{Deny: []settings.Entry{{Text: deny, File: "settings.json", Line: 1}}},
		Contain:  func() guard.Containment { return guard.Containment{Writes: true, Denies: true} },
	})
	if err != nil {
		tb.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	cs = New(log, baseline.Open("", log), "")
	c, err = cs.Acquire(tb.Context(), "me", policy)
	if errors.Is(err, sandbox.ErrUnavailable) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cs.Release(c)
		if err := cs.Close(); err != nil {
			tb.Error(err)
		}
	})
	if c.box.Report().Backend != sandbox.Namespaces {
		tb.Skip("nothing covers a file while a command runs here")
	}
	return cs, c
}

func put(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// await polls until ok, for as long as a busy machine may take.
func await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("still waiting for %s", what)
		}
	}
}

// awaitCover waits until the file at a path is covered.
func awaitCover(t *testing.T, c *Sandbox, path string) {
	t.Helper()
	await(t, "the cover of "+path, func() bool {
		file, err := lookAt(path)
		c.mu.Lock()
		defer c.mu.Unlock()
		known := c.deniedAtMount[path]
		return err == nil && known != nil && known.same(file)
	})
}

// TestAppears: a denied file that somebody makes while a command runs is out of that command's reach, wherever it
// appears and however.
func TestAppears(t *testing.T) {
	testenv.NeedsNotifications(t)
	for name, appear := range map[string]func(t *testing.T, c *Sandbox, ws string) (path string){
		"in the root": func(t *testing.T, _ *Sandbox, ws string) string {
			put(t, filepath.Join(ws, "a.key"), kept)
			return "a.key"
		},
		"by a rename": func(t *testing.T, _ *Sandbox, ws string) string {
			put(t, filepath.Join(ws, "x"), kept)
			if err := os.Rename(filepath.Join(ws, "x"), filepath.Join(ws, "sub", "b.key")); err != nil {
				t.Fatal(err)
			}
			return "sub/b.key"
		},
		"in place of another": func(t *testing.T, _ *Sandbox, ws string) string {
			put(t, filepath.Join(ws, "x"), kept)
			if err := os.Rename(filepath.Join(ws, "x"), filepath.Join(ws, "sub", "old.key")); err != nil {
				t.Fatal(err)
			}
			return "sub/old.key"
		},
		"in a new directory": func(t *testing.T, _ *Sandbox, ws string) string {
			if err := os.MkdirAll(filepath.Join(ws, "n", "e", "w"), 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(ws, "n", "e", "w", "c.key"), kept)
			return "n/e/w/c.key"
		},
		"in a directory made anew": func(t *testing.T, _ *Sandbox, ws string) string {
			if err := os.RemoveAll(filepath.Join(ws, "sub")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(ws, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(ws, "sub", "d.key"), kept)
			return "sub/d.key"
		},
		"below a directory in place of another": func(t *testing.T, c *Sandbox, ws string) string {
			dir := filepath.Join(ws, "n", "e")
			fill := func() {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(dir, "c.key"), kept)
				awaitCover(t, c, filepath.Join(dir, "c.key"))
			}
			fill()
			if err := os.Rename(filepath.Join(ws, "n"), filepath.Join(ws, "old")); err != nil {
				t.Fatal(err)
			}
			fill()
			put(t, filepath.Join(dir, "d.key"), kept)
			return "n/e/d.key"
		},
		"as another name": func(t *testing.T, _ *Sandbox, ws string) string {
			if err := os.Link(filepath.Join(ws, "sub", "old.key"), filepath.Join(ws, "name")); err != nil {
				t.Fatal(err)
			}
			return "name"
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, c, ws := watchedSandbox(t)
			await(t, "the watch", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.watch.byPath[filepath.Join(ws, "sub")] != nil && c.watch.byPath[ws] != nil
			})
			out, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			p, err := c.box.Spawn(sandbox.Spec{
				Argv: []string{"/bin/bash", "-c", "until [ -e go ]; do :; done; cat $(cat go)"}, Dir: ws,
				Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{nil, w, w},
			})
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			path := appear(t, c, ws)
			awaitCover(t, c, filepath.Join(ws, path))
			put(t, filepath.Join(ws, "going"), path)
			if err := os.Rename(filepath.Join(ws, "going"), filepath.Join(ws, "go")); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(out)
			if err != nil || strings.Contains(string(text), kept) {
				t.Errorf("the command read %q, %v", text, err)
			}
			if _, err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCloseEndsRetired: a sandbox that is out of use, but for a command that runs in it, ends with the others.
func TestCloseEndsRetired(t *testing.T) {
	cs, c, _ := watchedSandbox(t)
	p, err := c.box.Spawn(sandbox.Spec{Argv: []string{"/bin/sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	cs.Discard("me", c)
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(); err == nil {
		t.Error("the command ended by itself")
	}
	if _, err := c.box.Spawn(sandbox.Spec{Argv: []string{"/bin/true"}}); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("the sandbox lives: %v", err)
	}
}

// BenchmarkAppears measures for how long a command that does nothing else can read a denied file that appears.
func BenchmarkAppears(b *testing.B) {
	_, c, ws := watchedSandbox(b)
	await(b, "the watch", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.watch.byPath[ws] != nil
	})
	toldRead, told, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	said, saidWrite, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	p, err := c.box.Spawn(sandbox.Spec{Argv: []string{os.Args[0], reader}, Dir: ws,
		Files: []*os.File{toldRead, saidWrite, saidWrite}})
	toldRead.Close()
	saidWrite.Close()
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		told.Close()
		p.Kill()
		said.Close()
	}()
	lines := bufio.NewScanner(said)
	var windows []float64
	for i := 0; b.Loop(); i++ {
		path := filepath.Join(ws, fmt.Sprintf("%d.key", i))
		fmt.Fprintln(told, path)
		if !lines.Scan() {
			b.Fatal("the command has ended")
		}
		put(b, path+".new", kept)
		begun := time.Now()
		if err := os.Rename(path+".new", path); err != nil {
			b.Fatal(err)
		}
		lines.Scan()
		last, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		windows = append(windows, max(0, float64(last-begun.UnixNano())/1e3))
	}
	slices.Sort(windows)
	b.ReportMetric(windows[len(windows)/2], "p50-µs")
	b.ReportMetric(windows[len(windows)*99/100], "p99-µs")
	b.ReportMetric(0, "ns/op") // the command looks for a fixed time
}
