//go:build slow && linux

package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/host"
)

// leaseFile has this process hold a lease on a file, as a file server does. What opens the file waits for /proc/sys/fs/lease-break-time.
func leaseFile(t *testing.T, path string, kind int) {
	t.Helper()
	flag := os.O_RDWR
	if kind == unix.F_RDLCK {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	host.Must(t, err)
	t.Cleanup(func() { f.Close() })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind); err != nil {
		t.Skipf("no leases here: %v", err)
	}
}

// TestAttackLeases calls the tools on files that another program holds a lease on. They answer long before the kernel takes it away.
func TestAttackLeases(t *testing.T) {
	t.Parallel()
	g := host.NewGround(t)
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.StdioModern, g.WS, host.CleanEnv(g.Home), "--state-dir", g.State)
	host.Must(t, err)
	defer h.Stop()
	for i, tt := range []struct {
		name, content, tool, args string // FILE is the file
		read                      bool   // first
	}{
		{"a.txt", "old\n", "Read", `{"file_path":"FILE"}`, false},
		{"b.txt", "old\n", "Edit", `{"file_path":"FILE","old_string":"old","new_string":"new"}`, true},
		{"c.txt", "old\n", "Write", `{"file_path":"FILE","content":"new"}`, true},
		{"d.txt", "old\n", "Grep", `{"pattern":"old","path":"FILE"}`, false},
		{"e.ipynb", `{"cells":[{"cell_type":"code","id":"x","source":"old","metadata":{},"outputs":[],"execution_count":null}],"nbformat":4,"nbformat_minor":5,"metadata":{}}`, "Read", `{"file_path":"FILE"}`, false},
		{"f.ipynb", `{"cells":[{"cell_type":"code","id":"x","source":"old","metadata":{},"outputs":[],"execution_count":null}],"nbformat":4,"nbformat_minor":5,"metadata":{}}`, "NotebookEdit", `{"notebook_path":"FILE","cell_id":"x","new_source":"new"}`, true},
		{"g.pdf", "%PDF-1.4\n", "Read", `{"file_path":"FILE"}`, false},
		{"h.png", "\x89PNG\r\n\x1a\n", "Read", `{"file_path":"FILE"}`, false},
	} {
		t.Run(fmt.Sprint(i, " ", tt.tool, " ", tt.name), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than the kernel's
			defer cancel()
			file := filepath.Join(g.WS, tt.name)
			host.Must(t, os.WriteFile(file, []byte(tt.content), 0o644))
			if tt.read {
				if r, err := h.Call(ctx, "Read", `{"file_path":"`+file+`"}`); err != nil || r.IsError {
					t.Fatalf("%v %s", err, r.Text())
				}
			}
			leaseFile(t, file, unix.F_WRLCK)
			r, err := h.Call(ctx, tt.tool, strings.ReplaceAll(tt.args, "FILE", file))
			host.Must(t, err)
			if !strings.Contains(r.Text(), "holds a lease") || tt.tool != "Grep" &&
				!strings.Contains(r.Text(), fmt.Sprintf("the process %d ", os.Getpid())) {
				t.Errorf("it does not say what holds the file: %s", r.Text())
			}
		})
	}
	t.Run("settings", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		file := filepath.Join(g.WS, ".claude/settings.json")
		host.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		host.Must(t, os.WriteFile(file, []byte(`{}`), 0o644))
		leaseFile(t, file, unix.F_WRLCK)
		_, err := h.Call(ctx, "Glob", `{"pattern":"*"}`)
		host.Must(t, err)
	})
	t.Run("a read lease does not keep readers", func(t *testing.T) {
		file := filepath.Join(g.WS, "shared.txt")
		host.Must(t, os.WriteFile(file, []byte("old\n"), 0o644))
		leaseFile(t, file, unix.F_RDLCK)
		for _, call := range [][2]string{{"Read", `{"file_path":"shared.txt"}`},
			{"Grep", `{"pattern":"old","path":"shared.txt"}`}} {
			if r, err := h.Call(ctx, call[0], call[1]); err != nil || r.IsError ||
				!strings.Contains(r.Text(), "shared.txt") && !strings.Contains(r.Text(), "old") {
				t.Errorf("%s: %v %s", call[0], err, r.Text())
			}
		}
	})
}
