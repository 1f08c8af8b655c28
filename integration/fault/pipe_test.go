//go:build slow && linux

package fault

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestFaultPipes puts a pipe, which whoever opens it waits for, in the place of each thing that a host has left in its state directory. A
// host started on that answers, and ends.
func TestFaultPipes(t *testing.T) {
	g := newGround(t)
	g.Put("a.txt", "number 0\n")
	n := 0
	s := g.start(host.StdioModern, "--console")
	s.work(&n)
	s.End()
	var names []string
	eachEntry(t, g.State, func(path string) {
		if path != g.State {
			names = append(names, strings.TrimPrefix(path, g.State))
		}
	})
	if len(names) < 15 {
		t.Fatalf("a host leaves only %q", names)
	}
	whole := g.State
	for _, name := range append(names, "/trust.lock", "/console/x.json", "/results/open/x.lock") {
		t.Run(name[1:], func(t *testing.T) { pipeAt(t, g, whole, name, &n) })
	}
}

// pipeAt has a host work on a copy of a state directory in which a pipe stands in the place of name.
func pipeAt(t *testing.T, in *ground, whole, name string, n *int) {
	dir, err := os.MkdirTemp("", "pipe") // short, for the console's socket
	host.Must(t, err)
	t.Cleanup(func() { host.Must(t, os.RemoveAll(dir)) })
	g := &ground{&host.Ground{T: t, WS: in.WS, Home: in.Home, State: filepath.Join(dir, "state")}}
	host.Must(t, os.CopyFS(g.State, os.DirFS(whole)))
	host.Must(t, os.RemoveAll(g.State+name))
	host.Must(t, os.MkdirAll(filepath.Dir(g.State+name), 0o700))
	host.Must(t, syscall.Mkfifo(g.State+name, 0o600))
	var flags []string
	if name != "/console" { // without its folder there is no console to be had
		flags = []string{"--console"}
	}
	s := g.start(host.StdioModern, flags...)
	s.work(n)
	if err := s.Stop(); err != nil && !strings.Contains(s.Stderr.String(), g.State) {
		t.Errorf("%v, and it does not say where:\n%s", err, s.Stderr)
	}
	if _, err := g.Run("history"); err != nil && !strings.Contains(err.Error(), g.State+name) {
		t.Errorf("history: %v", err)
	}
}

// TestFaultHuge puts a file of more bytes than memory holds in the place of each file of the state directory, and in that of another a link to
// one elsewhere, which must stay as it is. A host started on that answers, and ends.
func TestFaultHuge(t *testing.T) {
	g := newGround(t)
	g.Put("a.txt", "number 0\n")
	n := 0
	s := g.start(host.StdioModern)
	s.work(&n)
	s.End()
	var names []string
	eachEntry(t, g.State, func(path string) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && filepath.Base(path) != "audit.jsonl" {
			names = append(names, strings.TrimPrefix(path, g.State))
		}
	})
	for i, name := range names {
		other := names[(i+1+len(names)/2)%len(names)] // of another part of the directory
		t.Run("huge"+name+",link"+other, func(t *testing.T) { strangeAt(t, g, name, other, &n) })
	}
}

// strangeAt has a host work on a copy of a state directory in which a file is huge, and another a link to one elsewhere.
func strangeAt(t *testing.T, in *ground, huge, link string, n *int) {
	g := &ground{&host.Ground{T: t, WS: in.WS, Home: in.Home, State: filepath.Join(host.TempDir(t), "state")}}
	host.Must(t, os.CopyFS(g.State, os.DirFS(in.State)))
	elsewhere := filepath.Join(host.TempDir(t), "elsewhere")
	host.Must(t, os.WriteFile(elsewhere, []byte("elsewhere\n"), 0o600))
	host.Must(t, os.Remove(g.State+link))
	host.Must(t, os.Symlink(elsewhere, g.State+link))
	if err := os.Truncate(g.State+huge, 1<<42); err != nil {
		t.Log(err) // the file system has no such files
	}
	s := g.start(host.StdioModern)
	s.work(n)
	if err := s.Stop(); err != nil {
		t.Errorf("%v\n%s", err, host.Clip(s.Stderr.String(), 600))
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "elsewhere\n" {
		t.Errorf("the file elsewhere holds %q, %v", text, err)
	}
}
