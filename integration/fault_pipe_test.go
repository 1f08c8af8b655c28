//go:build linux

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFaultPipes puts a pipe, which whoever opens it waits for, in the place of each thing that a host has left in its state directory. A
// host started on that answers, and ends.
func TestFaultPipes(t *testing.T) {
	g := newGround(t)
	g.put("a.txt", "number 0\n")
	n := 0
	s := g.start(stdioModern, "--console")
	s.work(&n)
	s.end()
	var names []string
	eachEntry(t, g.state, func(path string) {
		if path != g.state {
			names = append(names, strings.TrimPrefix(path, g.state))
		}
	})
	if len(names) < 15 {
		t.Fatalf("a host leaves only %q", names)
	}
	whole := g.state
	for _, name := range append(names, "/trust.lock", "/console/x.json", "/results/key.new", "/results/open/x.lock") {
		t.Run(name[1:], func(t *testing.T) { pipeAt(t, g, whole, name, &n) })
	}
}

// pipeAt has a host work on a copy of a state directory in which a pipe stands in the place of name.
func pipeAt(t *testing.T, in *ground, whole, name string, n *int) {
	dir, err := os.MkdirTemp("", "pipe") // short, for the console's socket
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	g := &ground{t: t, ws: in.ws, home: in.home, state: filepath.Join(dir, "state")}
	must(t, os.CopyFS(g.state, os.DirFS(whole)))
	must(t, os.RemoveAll(g.state+name))
	must(t, os.MkdirAll(filepath.Dir(g.state+name), 0o700))
	must(t, syscall.Mkfifo(g.state+name, 0o600))
	var flags []string
	if name != "/console" { // without its folder there is no console to be had
		flags = []string{"--console"}
	}
	s := g.start(stdioModern, flags...)
	s.work(n)
	if err := s.stop(); err != nil && !strings.Contains(s.stderr.String(), g.state) {
		t.Errorf("%v, and it does not say where:\n%s", err, s.stderr)
	}
	if _, err := g.run("history"); err != nil && !strings.Contains(err.Error(), g.state+name) {
		t.Errorf("history: %v", err)
	}
}

// TestFaultHuge puts a file of more bytes than memory holds in the place of each file of the state directory, and a link to
// one elsewhere, which must stay as it is. A host started on that answers, and ends.
func TestFaultHuge(t *testing.T) {
	g := newGround(t)
	g.put("a.txt", "number 0\n")
	n := 0
	s := g.start(stdioModern)
	s.work(&n)
	s.end()
	var names []string
	eachEntry(t, g.state, func(path string) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && filepath.Base(path) != "audit.jsonl" {
			names = append(names, strings.TrimPrefix(path, g.state))
		}
	})
	for _, name := range names {
		for _, kind := range []string{"huge", "link"} {
			t.Run(kind+name, func(t *testing.T) { strangeAt(t, g, name, kind, &n) })
		}
	}
}

// strangeAt has a host work on a copy of a state directory in which a file is huge, or a link to one elsewhere.
func strangeAt(t *testing.T, in *ground, name, kind string, n *int) {
	g := &ground{t: t, ws: in.ws, home: in.home, state: filepath.Join(tempDir(t), "state")}
	must(t, os.CopyFS(g.state, os.DirFS(in.state)))
	elsewhere := filepath.Join(tempDir(t), "elsewhere")
	must(t, os.WriteFile(elsewhere, []byte("elsewhere\n"), 0o600))
	if kind == "huge" {
		if err := os.Truncate(g.state+name, 1<<42); err != nil {
			t.Skip(err)
		}
	} else {
		must(t, os.Remove(g.state+name))
		must(t, os.Symlink(elsewhere, g.state+name))
	}
	s := g.start(stdioModern)
	s.work(n)
	if err := s.stop(); err != nil {
		t.Errorf("%v\n%s", err, clip(s.stderr.String(), 600))
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "elsewhere\n" {
		t.Errorf("the file elsewhere holds %q, %v", text, err)
	}
}
