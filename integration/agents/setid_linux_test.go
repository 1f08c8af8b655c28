package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestUndoOfSetIDs undoes changes of files that had a set-id bit, and of a shared directory.
func TestUndoOfSetIDs(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	for name, mode := range map[string]os.FileMode{"suid": os.ModeSetuid | 0o755, "sgid": os.ModeSetgid | 0o755,
		"edited": os.ModeSetuid | os.ModeSetgid | 0o755} {
		path := filepath.Join(p.Project, name)
		host.Must(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
		host.Must(t, os.Chmod(path, mode))
	}
	shared := filepath.Join(p.Project, "shared")
	host.Must(t, os.Mkdir(shared, 0o755))
	host.Must(t, os.Chmod(shared, os.ModeSetgid|0o775))
	out, ok := p.Run(t, nil, host.Binary, "run", "--", "bash", "-c",
		"for f in suid sgid; do echo id > $f; mv $f $f.x; done; chmod g-s,g-w shared; echo x > edited")
	if !ok {
		t.Fatalf("the client failed:\n%s", out)
	}
	history, _ := p.Run(t, nil, host.Binary, "history")
	out, ok = p.Run(t, nil, host.Binary, "undo", "--yes", strings.Fields(history)[0])
	if !ok || !strings.Contains(out, "without its set-user-ID or set-group-ID bit") {
		t.Errorf("undo says\n%s", out)
	}
	for _, name := range []string{"suid", "sgid", "edited"} {
		if got, err := os.ReadFile(filepath.Join(p.Project, name)); string(got) != "#!/bin/sh\n" {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	files, _, dirs := setIDs(t, p.Project)
	if len(files) > 0 || len(dirs) != 1 {
		t.Errorf("files with set-id bits: %q, shared directories: %q", files, dirs)
	}
	if info, err := os.Stat(filepath.Join(p.Project, "suid")); err != nil || info.Mode() != 0o755 {
		t.Errorf("suid: %v, %v", info.Mode(), err)
	}
}
