//go:build slow

package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// makesSetIDs is a script that gives files set-id bits and makes devices, in the current directory.
const makesSetIDs = `
import os, stat, subprocess
def t(f, *a, **k):
    try: f(*a, **k)
    except OSError: pass
for bit in (0o4000, 0o2000, 0o6000):
    n = "f%o" % bit
    for i, f in enumerate((
        lambda n: (open(n, "w").close(), os.chmod(n, bit | 0o755)),
        lambda n: os.close(os.open(n, os.O_CREAT | os.O_WRONLY, bit | 0o755)),
        lambda n: (lambda fd: (os.fchmod(fd, bit | 0o755), os.close(fd)))(os.open(n, os.O_CREAT | os.O_WRONLY, 0o755)),
        lambda n: os.mknod(n, stat.S_IFREG | bit | 0o755),
        lambda n: subprocess.run(["install", "-m", "%o" % (bit | 0o755), "/bin/true", n], stderr=subprocess.DEVNULL),
        lambda n: (open(n, "w").close(), subprocess.run(["chmod", "u+s,g+s", n], stderr=subprocess.DEVNULL)),
        lambda n: (os.mkfifo(n), os.chmod(n, bit | 0o600)),
    )): t(f, n + "-%d" % i)
t(os.mknod, "chr", stat.S_IFCHR | 0o666, os.makedev(1, 3))
t(os.mknod, "null", stat.S_IFCHR | 0o666, 0)
t(os.mknod, "blk", stat.S_IFBLK | 0o666, os.makedev(7, 0))
t(lambda: (open("cap", "w").close(), os.setxattr("cap", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))))
os.makedirs("shared/below"); os.chmod("shared", 0o2775); subprocess.run(["chmod", "-R", "g+s", "shared"], check=True)
open("plain", "w").close(); os.chmod("plain", 0o750)
print("done")
`

// TestSetIDs has commands and a whole client make programs that would run with the rights of the owner of the workspace.
func TestSetIDs(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	host.Must(t, os.WriteFile(filepath.Join(p.Home, "make.py"), []byte(makesSetIDs), 0o600))
	host.Must(t, os.WriteFile(filepath.Join(p.Project, ".gitignore"), []byte("ignored/\n"), 0o600))
	for _, dir := range []string{"by-run", "by-bash", "ignored/by-bash", "node_modules/.bin"} {
		host.Must(t, os.MkdirAll(filepath.Join(p.Project, dir), 0o755))
		script := "cd " + dir + " && python3 " + p.Home + "/make.py; cd $(mktemp -d) && python3 " + p.Home + "/make.py"
		var out string
		if dir == "by-run" {
			out, _ = p.Run(t, nil, host.Binary, "run", "--", "bash", "-c", script)
		} else {
			args, err := json.Marshal(map[string]string{"command": script})
			host.Must(t, err)
			out, _ = p.Run(t, nil, host.Binary, "call", "Bash", string(args))
		}
		if strings.Count(out, "done") < 2 {
			t.Errorf("in %s the script failed:\n%s", dir, out)
		}
	}
	files, devices, _ := setIDs(t, p.Home)
	if len(files)+len(devices) > 0 {
		t.Errorf("files with set-id bits: %q, devices: %q", files, devices)
	}
	if _, _, dirs := setIDs(t, p.Project); len(dirs) != 4*2 {
		t.Errorf("shared directories: %q", dirs)
	}
	if info, err := os.Stat(filepath.Join(p.Project, "by-run/plain")); err != nil || info.Mode() != 0o750 {
		t.Errorf("plain: %v, %v", info.Mode(), err)
	}
}

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
