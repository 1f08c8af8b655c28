//go:build unix

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestAttackReplacedWhileRead replaces a denied file, as an editor does that saves it, while a command reads it
// in a loop. No command that starts later may read the new file; one that runs at that moment should lose it
// within about a millisecond.
func TestAttackReplacedWhileRead(t *testing.T) {
	testenv.NeedsNamespaces(t)
	host.NeedsContained(t)
	w := newWorld(t)
	h := w.host(t, host.StdioModern, profileFlags(w, "kernel")...)
	const replacements = 20
	started := filepath.Join(w.ws, "started")
	ctx, cancel := host.Patient()
	defer cancel()
	p, err := h.Start(ctx, "Bash", `{"command":"F=$(echo .e); touch started; until [ -e stop ]; do X=$(cat ${F}nv 2>/dev/null) && echo \"$X\"; done; for i in $(seq 500); do cat ${F}nv > last 2>/dev/null || { echo covered; break; }; done","timeout":30000}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for !exists(started) && ctx.Err() == nil {
	}
	for i := range replacements {
		next := filepath.Join(w.ws, ".env.next")
		if err := os.WriteFile(next, fmt.Appendf(nil, "fresh-%d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(w.ws, ".env")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.ws, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := p.Result(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("reads of a fresh file: %d in %d replacements", strings.Count(r.Text(), "fresh-"), replacements)
	if !strings.Contains(r.Text(), "covered") {
		t.Error("the new file stays open to the command that ran when it came")
	}
	if said := h.call(t, "Bash", `{"command":"F=$(echo .e); cat ${F}nv"}`, "afterwards"); said.ok ||
		strings.Contains(said.raw, "fresh-") {
		t.Errorf("the new file is open to the next command: %s", said.text)
	}
	w.end(t, h)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestAttackAppended appends to a file, as a program does that logs, while it is edited. Each line must be there afterwards,
// whether the program keeps the file open or opens it for each line.
func TestAttackAppended(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who writes")
	}
	for _, keeps := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept open %v", keeps), func(t *testing.T) {
			w := newWorld(t)
			path := filepath.Join(w.ws, "app.log")
			if err := os.WriteFile(path, []byte("edit 1000\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			h := w.host(t, host.StdioModern, "--root", w.ws)
			var stop atomic.Bool
			lines := make(chan int)
			go func() { lines <- appendLines(path, keeps, &stop) }()
			edits := 0
			for i := range samples.Rounds(150) {
				h.call(t, "Read", `{"file_path":"app.log","limit":1}`, "read")
				said := h.call(t, "Edit", fmt.Sprintf(`{"file_path":"app.log","old_string":"edit %d\n","new_string":"edit %d\n"}`, 1000+edits, 1001+edits), fmt.Sprint(i))
				if said.ok {
					edits++
				}
			}
			stop.Store(true)
			want := <-lines
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(raw), "line\n"); got != want ||
				!strings.HasPrefix(string(raw), fmt.Sprintf("edit %d\n", 1000+edits)) {
				t.Errorf("after %d edits %d of %d lines are there: %s", edits, got, want, host.Clip(string(raw), 200))
			}
			t.Logf("%d edits, %d lines", edits, want)
			w.end(t, h)
		})
	}
}

// appendLines appends lines until it is to stop, and returns how many.
func appendLines(path string, keeps bool, stop *atomic.Bool) (lines int) {
	var f *os.File
	for ; !stop.Load(); lines++ {
		var err error
		if f == nil {
			if f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
				return -1
			}
		}
		if _, err := f.WriteString("line\n"); err != nil {
			return -1
		}
		if !keeps {
			f.Close()
			f = nil
		}
		time.Sleep(500 * time.Microsecond)
	}
	f.Close()
	return lines
}
