package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

// A log that is followed gives every record once and in order, however it is rotated between two looks.
func TestFollowLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	rotate := func() {
		for n := 5; n > 1; n-- {
			_ = os.Rename(rotated(path, n-1), rotated(path, n)) // of those that there are
		}
		if err := os.Rename(path, rotated(path, 1)); err != nil {
			t.Fatal(err)
		}
	}
	line := func(n int) string {
		raw, err := json.Marshal(audit.Record{Tool: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw) + "\n"
	}
	tail := &logTail{path: path}
	defer tail.close()
	var got []string
	look := func() {
		t.Helper()
		err := tail.more(func(line []byte) error {
			var r audit.Record
			err := json.Unmarshal(line, &r)
			got = append(got, r.Tool)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look() // there is no log yet
	write(line(1) + line(2)[:5])
	look()
	write(line(2)[5:])
	look()
	write(line(3))
	rotate()
	look() // between two steps of a rotation
	write(line(4))
	look()
	for n := 5; n < 8; n++ {
		rotate()
		write(line(n))
	}
	look()
	if want := []string{"1", "2", "3", "4", "5", "6", "7"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	look()
	write(line(8))
	look()
	if got[len(got)-1] != "8" {
		t.Errorf("after a truncation: %v", got)
	}

	lines, err := (&logTail{path: path, file: nil}).last(&logQuery{limit: 3})
	if err != nil || len(lines) != 3 || !bytes.Contains(lines[2], []byte(`"6"`)) {
		t.Errorf("the last of the rotated files: %q, %v", lines, err)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]string{"30d": "720h0m0s", "2w": "336h0m0s", "1.5d": "36h0m0s", "10m": "10m0s",
		"-1d": "", "d": "", "1y": "", "": ""} {
		d, err := parseDuration(text)
		if got := d.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// Every command has an example and stands in a group, and the help of none is a line alone.
func TestHelp(t *testing.T) {
	root := command()
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.GroupID == "" && !cmd.IsAdditionalHelpTopicCommand() {
			t.Errorf("%s stands in no group", cmd.Name())
		}
		for _, c := range append(cmd.Commands(), cmd) {
			if c.Runnable() && !c.Hidden && c.Example == "" && c.Name() != "help" &&
				c.Parent().Name() != "completion" && c.Name() != "completion" {
				t.Errorf("%s has no example", c.CommandPath())
			}
		}
	}
	for path := range examples {
		if cmd, _, err := root.Find(strings.Fields(path)[1:]); err != nil || cmd.CommandPath() != path {
			t.Errorf("an example is of %s, which is no command", path)
		}
	}
}

// Directories and flags alone are what a client starts.
func TestImplied(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"run", "project"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args string
		want bool // stdio is implied
	}{
		{"", true}, {dir, true}, {"--root " + dir, true}, {"--tools Read " + dir, true}, {"/nonexistent/x", true}, {".", true},
		{"stdio", false}, {"undoo", false}, {"--help", false}, {"--root " + dir + " trust", false}, {"call Read x=" + dir, false},
		{"run -- true", false}, {"./run", true}, {"project", true},
	} {
		args := strings.Fields(tt.args)
		got := implied(command(), args)
		if implies := len(got) == len(args)+1 && got[0] == "stdio"; implies != tt.want {
			t.Errorf("toolhost %s: %q", tt.args, got)
		}
	}
}
