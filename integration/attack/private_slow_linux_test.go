//go:build slow

package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAttackPrivate uses /tmp as honest commands do, with every tool, and reaches from there for what other programs have.
func TestAttackPrivate(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	t.Run("namespaces", func(t *testing.T) { attackPrivate(t, newWorld(t)) })
	t.Run("user", func(t *testing.T) {
		w := newWorld(t)
		if os.Geteuid() != 0 {
			t.Skip("only root gives files away")
		}
		w.giveTo(t, ordinaryUser)
		attackPrivate(t, w)
	})
}

// TestAttackLinked reads denied files and keys by names that another program gave them, before the first command and after it.
func TestAttackLinked(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	t.Run("namespaces", func(t *testing.T) { attackLinked(t, newWorld(t)) })
	t.Run("no rule", func(t *testing.T) { attackLinked(t, newWorld(t), "--allow", "Bash") })
}

func attackLinked(t *testing.T, w *world, flags ...string) {
	key := filepath.Join(w.home, ".ssh", "toolhost_key")
	host.Must(t, os.MkdirAll(filepath.Dir(key), 0o700))
	host.Must(t, os.WriteFile(key, []byte(canaryHome+"\n"), 0o600))
	files := []string{key}
	if flags == nil {
		flags = []string{"--deny", "Read(.env)", "--deny", "Read(/shut/**)"}
		host.Must(t, os.MkdirAll(filepath.Join(w.ws, "shut", "deep"), 0o755))
		host.Must(t, os.WriteFile(filepath.Join(w.ws, "shut", "deep", "f"), []byte(canaryKey+"\n"), 0o644))
		files = append(files, filepath.Join(w.ws, ".env"), filepath.Join(w.ws, "shut", "deep", "f"))
	}
	host.Must(t, os.Link(key, filepath.Join(w.ws, "first")))
	h := w.host(t, host.StdioModern, append([]string{"--root", w.ws}, flags...)...)
	read := func(path string) {
		t.Helper()
		if said := h.call(t, "Bash", fmt.Sprintf(`{"command":"f=$(printf %%s '%s'); until cat \"$f\" 2>&1 | grep denied; do sleep 0.1; ((++n > 50)) && break; done; cat \"$f\""}`, path), "linked"); said.ok || w.leaks(said.raw, "") != "" {
			t.Errorf("%s is shown: %s", path, host.Clip(said.text, 300))
		}
	}
	read(filepath.Join(w.ws, "first"))
	for i, file := range files {
		for _, name := range []string{"new/e/w", ".git/objects", "src"} {
			link := filepath.Join(w.ws, name, fmt.Sprintf("name%d", i))
			host.Must(t, os.MkdirAll(filepath.Dir(link), 0o755))
			host.Must(t, os.Link(file, link))
			read(link)
		}
	}
	w.before = w.snapshot()
	w.end(t, h)
}

// A common is what host programs have in a directory that all share.
type common struct {
	file, pipe, socket, dir string
	ends                    *os.File // of the pipe
}

func newCommon(t *testing.T, dir string) *common {
	t.Helper()
	name := fmt.Sprintf("toolhost-%d-%d", os.Getpid(), time.Now().UnixNano())
	c := &common{
		file: filepath.Join(dir, name+"-file"), pipe: filepath.Join(dir, name+"-pipe"),
		socket: filepath.Join(dir, name+"-socket"), dir: filepath.Join(dir, name+"-dir"),
	}
	t.Cleanup(func() {
		for _, path := range []string{c.file, c.pipe, c.socket, c.dir} {
			os.RemoveAll(path)
		}
	})
	host.Must(t, os.Mkdir(c.dir, 0o777))
	for _, path := range []string{c.file, filepath.Join(c.dir, "file")} {
		host.Must(t, os.WriteFile(path, []byte("of the host\n"), 0o666))
	}
	host.Must(t, syscall.Mkfifo(c.pipe, 0o666))
	host.Must(t, syscall.Mkfifo(filepath.Join(c.dir, "pipe"), 0o666))
	for _, path := range []string{c.file, c.pipe, c.dir, filepath.Join(c.dir, "pipe"), filepath.Join(c.dir, "file")} {
		host.Must(t, os.Chmod(path, 0o777))
	}
	var err error
	c.ends, err = os.OpenFile(filepath.Join(c.dir, "pipe"), os.O_RDWR, 0)
	host.Must(t, err)
	t.Cleanup(func() { c.ends.Close() })
	_, err = c.ends.WriteString(canaryKey + "\n")
	host.Must(t, err)
	l, err := net.Listen("unix", c.socket)
	host.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return c
}

func attackPrivate(t *testing.T, w *world) {
	hosts := newCommon(t, "/tmp")
	h := w.host(t, host.StdioModern, "--root", w.ws, "--deny", "Read(.env)")
	call := func(tool string, args map[string]any) said {
		raw, err := json.Marshal(args)
		host.Must(t, err)
		return h.call(t, tool, string(raw), "private")
	}
	bash := func(format string, args ...any) said {
		return call("Bash", map[string]any{"command": fmt.Sprintf(format, args...)})
	}
	name := hosts.file + "-own"
	want := func(s said, what, text string) {
		t.Helper()
		if !s.ok || !strings.Contains(s.text, text) {
			t.Errorf("%s: %s", what, host.Clip(s.text, 400))
		}
	}
	refused := func(s said, what string) {
		t.Helper()
		if s.ok && s.text != "" || w.leaks(s.raw, "") != "" {
			t.Errorf("%s: %s", what, host.Clip(s.text, 400))
		}
	}
	want(bash("echo one > %s && env -u TMPDIR mktemp && mktemp /var/tmp/x.XXXX && mkdir /run/own && cat %[1]s", name),
		"a command", "one")
	want(bash("echo $TMPDIR; mktemp"), "a short path, for sockets", "/tmp\n/tmp/tmp.")
	want(call("Read", map[string]any{"file_path": name}), "Read", "one")
	want(call("Edit", map[string]any{"file_path": name, "old_string": "one", "new_string": "two"}), "Edit",
		"Edited "+name)
	want(bash("cat %s", name), "a command after Edit", "two")
	want(call("Write", map[string]any{"file_path": name + "/../" + filepath.Base(name) + "-new/deep",
		"content": "three\n"}), "Write", "Created")
	want(bash("cat %s-new/deep", name), "a command after Write", "three")
	want(call("Grep", map[string]any{"path": "/tmp", "pattern": "^two"}), "Grep", name)
	want(call("Glob", map[string]any{"path": "/tmp", "pattern": "**/deep"}), "Glob", name+"-new/deep")
	if found := call("Glob", map[string]any{"path": "/tmp", "pattern": "*"}); strings.Contains(found.text, hosts.file+
		"\n") || strings.Contains(found.text, w.state) {
		t.Errorf("Glob shows what is not the caller's: %s", found.text)
	}
	want(bash("cat %s %s/file", hosts.file, hosts.dir), "a file of the host", "of the host\nof the host")
	refused(bash("echo x >> %s; echo x > %s/new; rm -rf %[1]s %[2]s; mv %[1]s %[1]s.moved", hosts.file, hosts.dir),
		"writing what the host has")
	refused(call("Write", map[string]any{"file_path": hosts.file, "content": "x"}), "Write of a file of the host")
	refused(call("Write", map[string]any{"file_path": hosts.dir + "/new", "content": "x"}),
		"Write into a directory of the host")
	refused(bash("ls %s && timeout 1 head -c 20 %[1]s", hosts.pipe), "a pipe")
	refused(bash("ls %s", hosts.socket), "a socket")
	host.Must(t, os.Rename(hosts.file, hosts.file+"-late"))
	want(bash("cat %s-late", hosts.file), "a file that has appeared", "of the host")
	host.Must(t, os.Rename(hosts.file+"-late", hosts.file))

	// Links that a command makes lead the tools nowhere that they could not go by its name.
	for i, to := range []string{filepath.Join(w.home, ".ssh", "id_rsa"), filepath.Join(w.state, "secret"),
		"/etc/shadow", filepath.Join(w.ws, ".env"), "/proc/self/environ"} {
		link := fmt.Sprintf("%s-link%d", name, i)
		bash("ln -s \"$(rev <<< '%s')\" %s", reversed(to), link)
		refused(call("Read", map[string]any{"file_path": link}), "Read of a link to "+to)
		refused(call("Write", map[string]any{"file_path": link, "content": "x"}), "Write through a link to "+to)
		refused(call("Grep", map[string]any{"path": link, "pattern": "."}), "Grep of a link to "+to)
	}
	if found := call("Grep", map[string]any{"path": "/tmp", "pattern": "canary"}); w.leaks(found.raw, "") != "" {
		t.Errorf("Grep of all: %s", found.text)
	}

	if _, err := os.Lstat(name); err == nil {
		t.Errorf("%s is on the host", name)
	}
	for _, path := range []string{hosts.file, filepath.Join(hosts.dir, "file")} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "of the host\n" {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	text := make([]byte, 200)
	fd := int(hosts.ends.Fd()) // which makes it blocking
	host.Must(t, syscall.SetNonblock(fd, true))
	if n, err := syscall.Read(fd, text); err != nil || string(text[:n]) != canaryKey+"\n" {
		t.Errorf("the pipe holds %q, %v", text[:max(n, 0)], err)
	}
	w.before = w.snapshot()
	w.end(t, h)
	if left, _ := filepath.Glob(filepath.Join(w.state, "private", "host-*")); len(left) > 0 {
		t.Errorf("left after the end: %v", left)
	}
}
