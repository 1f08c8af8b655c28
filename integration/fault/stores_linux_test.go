package fault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// useStores makes a host use its stores, and returns the ground with what they have written. Tests look at every entry that is there, so
// that they cover a store that is added.
func useStores(t *testing.T) *ground {
	g := newGround(t)
	g.Put("a.txt", "number 0\n")
	s := g.start(host.StdioModern)
	s.MustCall("Read", host.Args{"file_path": "a.txt"})
	s.MustCall("Edit", host.Args{"file_path": "a.txt", "old_string": "number 0", "new_string": "number 1"})
	s.MustCall("Bash", host.Args{"command": "seq 20000"})
	p, err := s.Start(s.Ctx, "Read", host.Args{"file_path": "a.txt"}.String(), host.Conversation("exact"))
	host.Must(t, err)
	_, err = p.Result(s.Ctx)
	host.Must(t, err)
	s.End()
	for _, name := range []string{"modes.json", "trust.json"} {
		host.MustWrite(t, filepath.Join(g.State, name), map[string]string{"modes.json": "[]", "trust.json": "{}"}[name])
	}
	for _, name := range []string{"run", "servers", "private", "ports"} { // of features that this host has not used
		host.Must(t, os.MkdirAll(filepath.Join(g.State, name), 0o700))
	}
	return g
}

// TestStateDamaged damages bytes of each small file of the state directory. The host serves without a panic, and what it refused before it
// refuses still.
func TestStateDamaged(t *testing.T) {
	g := useStores(t)
	g.Put("unread.txt", "unread\n")
	host.MustWrite(t, filepath.Join(g.WS, ".claude", "settings.json"), `{"permissions":{"allow":["Bash(touch *)"]}}`)
	check := func(what string) {
		t.Helper()
		s := g.start(host.StdioModern)
		if text, failed := s.Try("Write", host.Args{"file_path": "unread.txt", "content": "lost\n"}); !failed {
			t.Errorf("%s: a file that was not read is written: %s", what, text)
		}
		if text, failed := s.Try("Read", host.Args{"file_path": "a.txt"}); failed && !strings.Contains(text, g.State) {
			t.Errorf("%s: Read fails and does not name the file: %s", what, text)
		}
		s.End()
		if log := s.Stderr.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
			t.Errorf("%s: %s", what, log)
		}
	}
	var files []string
	eachFile(t, g.State, func(path string, size int64) {
		if size > 0 && size <= 4<<10 {
			files = append(files, path)
		}
	})
	for n, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			continue // of a host that has ended since
		}
		for i := 0; i < len(whole); i += max(1, samples.Step(len(whole)/2)) {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1
			for how, text := range map[string][]byte{"cut": whole[:i], "flipped": flipped} {
				if samples.Step(1) > 1 && (how == "cut") == (n%2 == 0) {
					continue
				}
				host.Must(t, os.WriteFile(path, text, 0o600))
				check(fmt.Sprintf("%s %s at %d", path, how, i))
			}
		}
		host.Must(t, os.WriteFile(path, whole, 0o600))
	}
}

// eachFile calls do for every regular file below a directory.
func eachFile(t *testing.T, dir string, do func(path string, size int64)) {
	t.Helper()
	host.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := e.Info()
		if err == nil {
			do(path, info.Size())
		}
		return err
	}))
}
