package mcpserver

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/testenv"
)

// namesOf is treeOf with the first name of each file.
func namesOf(t *testing.T, root string) map[string]string {
	t.Helper()
	all := treeOf(t, root)
	first := map[uint64]string{}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inode, name := info.Sys().(*syscall.Stat_t).Ino, path[len(root)+1:]
		if first[inode] == "" {
			first[inode] = name
		}
		all[name] += " = " + first[inode]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// write writes a file with the tool, after it has read it.
func write(t *testing.T, h *Host, path, content string) {
	t.Helper()
	for _, tool := range []string{"Read", "Write"} {
		args, err := json.Marshal(map[string]string{"file_path": path, "content": content})
		if tool == "Read" {
			args, err = json.Marshal(map[string]string{"file_path": path})
		}
		if err != nil {
			t.Fatal(err)
		}
		by := h.Admit(Local(), map[string]any{"threadId": "t"}, "", true)
		if r := h.Call(t.Context(), by, Request{Tool: tool, Args: args}); r.IsError && tool == "Write" {
			t.Fatal(r.Text)
		}
	}
}

// TestRewindBack: what one command made and removed while another one ran does not come back with the rewind of both, and
// is no change of the other one alone.
func TestRewindBack(t *testing.T) {
	t.Parallel()
	h, root := openHost(t, map[string]string{"a": "1\n"})
	bash(t, h, "true")
	before, since := treeOf(t, root), time.Now()
	done := make(chan string)
	go func() {
		done <- bashBy(t, h, Local(),
			"echo 2 > a; echo 1 > new; until [ -e second ]; do sleep 0.01; done; echo 1 > a; rm new; : > first")
	}()
	for {
		if _, err := os.Stat(filepath.Join(root, "new")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	h.Call(t.Context(), h.Admit(Local(), map[string]any{"threadId": "u"}, "", true), Request{Tool: "Bash",
		Args: json.RawMessage(`{"command":": > second; until [ -e first ]; do sleep 0.01; done"}`)})
	<-done
	undo(t, h, since)
	if diff := cmp.Diff(before, treeOf(t, root)); diff != "" {
		t.Errorf("rewound (-before +rewound):\n%s", diff)
	}
}

// TestRewindWritten: what calls of Write and commands have made of the same files is taken back as a whole, with all their names and modes,
// and an undo of that gives it back.
func TestRewindWritten(t *testing.T) {
	testenv.NotShort(t, "starts a sandbox")
	for _, tt := range []struct{ name, before, steps string }{ // a step "W FILE" writes; others are commands
		{"all names of a file", "ln a b", "W a"},
		{"a name that a command removes after it", "ln a b", "W a;rm b"},
		{"a name that sorts first and is removed", "ln d/f A", "W d/f;rm A"},
		{"a mode between two writes", "ln a b", "W a;chmod 755 b;W b"},
		{"new names of a file", "", "cp -al d e"},
		{"a new name of a file that is written", "", "ln a b;W a"},
		{"names that leave a file together", "ln d/f top; ln d/f d/f1", "tar cf t d; rm -r d; tar xf t; rm t"},
		{"a name that leaves a file", "ln a b; ln a c", "cp -p c t; mv t c"},
		{"names that are joined with another file", "ln a b; cp -p a c", "ln -f c a; ln -f c b"},
		{"a name that a command parts after a Write", "echo 2 > b; chmod 600 b; ln a c", "W a;mv b a"},
		{"two written files that a command joins", "", "W a;W d/f;ln -f a d/f"},
		{"a file with another mode that is joined", "cp a c; chmod 755 a", "ln -f a c"},
		{"names with another mode that are joined", "cp a c; ln c e; chmod 755 a", "ln -f a c; ln -f a e"},
		{"names with another mode that are parted", "ln a b; chmod 600 a", "rm a b; echo 1 > a; echo 1 > b"},
		{"a link for a name that was written", "ln a b", "W a;ln -sf d/f a"},
		{"names in a directory that becomes a link", "mkdir d2; echo 4 > d2/f", "rm -r d2; ln -s d d2; cp -al d e"},
		{"written names that are parted and as before", "ln a b", "W a;rm a b; echo 1 > a; echo 1 > b"},
		{"the mode after a Write", "", "W a;chmod 755 a"},
		{"the mode of a file that is gone", "chmod 755 a", "W a;rm a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, root := openHost(t, map[string]string{"a": "1\n", "d/f": "2\n"})
			bash(t, h, tt.before)
			before, since := namesOf(t, root), time.Now()
			for step := range strings.SplitSeq(tt.steps, ";") {
				if name, ok := strings.CutPrefix(step, "W "); ok {
					write(t, h, filepath.Join(root, name), step)
				} else {
					bash(t, h, step)
				}
			}
			left := namesOf(t, root)
			id := undo(t, h, since)
			if diff := cmp.Diff(before, namesOf(t, root)); diff != "" {
				t.Fatalf("rewound (-before +rewound):\n%s", diff)
			}
			if _, err := h.Operator().Undo(t.Context(), builtin.UndoSelection{IDs: []string{id}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(left, namesOf(t, root)); diff != "" {
				t.Errorf("undone again (-left +undone):\n%s", diff)
			}
		})
	}
}
