//go:build slow

package mcpserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/builtin"
)

// TestRewindOfWhatIsNotRead: large files and pipes that a command made go, if they are still those, and it is said what does not come back.
func TestRewindOfWhatIsNotRead(t *testing.T) {
	t.Parallel()
	const script = "truncate -s 65M big small other; truncate -s 2M x.log; mkfifo p q"
	const large, pipe = "it has more than the 64 MiB that the history keeps of a file", "it is a pipe, a socket or a device"
	h, root := openHost(t, map[string]string{".gitignore": "*.log\n", "small": "1\n"})
	for strings.Contains(bash(t, h, "true"), "had been read") {
	}
	before, since := treeOf(t, root), time.Now()
	bash(t, h, script)
	if err := os.Truncate(filepath.Join(root, "other"), 66<<20); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("sh", "-c", "rm "+root+"/q; mkfifo "+root+"/q2; mv "+root+"/q2 "+root+
		"/q").Run(); err != nil {
		t.Fatal(err)
	}
	rewind := func(sel builtin.UndoSelection) (map[string]string, string) {
		r, err := h.Operator().Undo(t.Context(), sel)
		if err != nil {
			t.Fatal(err)
		}
		became := map[string]string{}
		for _, f := range r.Files {
			if became[filepath.Base(f.Path)] = f.Gone; f.Err != nil {
				became[filepath.Base(f.Path)] = "left: " + f.Err.Error()
			}
		}
		return became, r.ID
	}
	for _, dry := range []bool{true, false} {
		became, id := rewind(builtin.UndoSelection{Since: since, DryRun: dry})
		for _, name := range []string{"other", "q"} {
			if !strings.HasPrefix(became[name], "left: it was changed after ") &&
				!strings.HasPrefix(became[name], "left: it cannot be restored: it is not a regular file") {
				t.Errorf("%s: %s", name, became[name])
			}
			delete(became, name)
		}
		if diff := cmp.Diff(map[string]string{"big": large, "small": large, "x.log": "", "p": pipe},
			became); diff != "" {
			t.Errorf("dry %v: (-want +got)\n%s", dry, diff)
		}
		if dry {
			continue
		}
		for _, name := range []string{"other", "q"} {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(before, treeOf(t, root)); diff != "" {
			t.Errorf("rewound (-before +rewound):\n%s", diff)
		}
		became, _ = rewind(builtin.UndoSelection{IDs: []string{id}})
		if !strings.Contains(became["big"], "is not kept: it has more than the 64 MiB") ||
			!strings.Contains(became["p"], "it was no regular file") || became["x.log"] != "" {
			t.Errorf("the undo of the rewind: %q", became)
		}
		if info, err := os.Stat(filepath.Join(root, "x.log")); err != nil || info.Size() != 2<<20 {
			t.Errorf("x.log: %v, %v", info, err)
		}
	}
}
