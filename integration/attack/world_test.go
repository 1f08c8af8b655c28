//go:build unix

package attack

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// The canaries: texts that no answer may hold, in whatever form.
const (
	canaryEnv     = "CANARYENV7f3a9b"
	canaryKey     = "CANARYKEY51c0de"
	canaryHome    = "CANARYHOMEd00d9"
	canaryOutside = "CANARYOUTe1f2aa" // what lies outside of the root; the sandbox does not hide it from commands
	deniedName    = "zebra9f3"
)

// A world is a workspace with what surrounds it, and with what must not be seen or changed.
type world struct {
	root, ws, home, state string
	user                  int             // whose it all is, and who runs the host; 0: who runs the test
	through               func(*exec.Cmd) // how the host is started, where that is by another program

	whole  bool              // nothing must change
	forms  map[string]string // what must not be shown, and what it is
	before map[string]string // what must not change
}

// newWorld makes a workspace as an attacker would prepare it.
func newWorld(t *testing.T) *world {
	t.Helper()
	testenv.NeedsNamespaces(t)
	root, err := filepath.EvalSymlinks(host.TempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: root, ws: filepath.Join(root, "ws"), home: filepath.Join(root, "home")}
	w.state = filepath.Join(w.home, "state", "toolhost")
	w.files(t)
	w.git(t)
	w.links(t)
	w.forms = map[string]string{}
	for what, canary := range map[string]string{"a denied file": canaryEnv, "a denied file in a directory": canaryKey,
		"a home secret": canaryHome} {
		for _, form := range disguises(canary) {
			w.forms[form] = what
		}
	}
	w.before = w.snapshot()
	return w
}

func (w *world) files(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{
		"ws/.env":                    "SECRET=" + canaryEnv + "\n",
		"ws/.env.example":            "SECRET=\n",
		"ws/secrets/zebra9f3.key":    canaryKey + "\n",
		"ws/secrets/deep/other.txt":  canaryKey + "\n",
		"ws/locked/a.txt":            "locked\n",
		"ws/locked/n.ipynb":          `{"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"execution_count":null,"source":[]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"ws/keep.txt":                "keep\n",
		"ws/names.txt":               "keep.txt\n",
		"ws/README.md":               "hello\nthe rm and curl of this project\n",
		"ws/environment.md":          "how the environment is set\n",
		"ws/package.json":            `{"name":"x"}`,
		"ws/src/main.go":             "package main\n\nfunc main() { println(\"hello\") }\n",
		"ws/src/other.go":            "package main // hello\n",
		"ws/.gitignore":              "ignored/\n.env\nhome/\n",
		"ws/ignored/x.txt":           "hidden by an ignore file\n",
		"ws/.claude/settings.json":   `{"permissions":{"deny":["Read(nosuchrule)"]}}`,
		"ws/.mcp.json":               `{"mcpServers":{}}`,
		"ws-evil/twin.txt":           canaryOutside + "\n",
		"outside/outside.txt":        canaryOutside + "\n",
		"home/.ssh/id_rsa":           canaryHome + "\n",
		"home/.bashrc":               "# rc\n",
		"home/.gitconfig":            "[user]\n\tname = t\n\temail = t@example.org\n",
		"home/.claude/settings.json": `{}`,
		"asking.json":                `{"permissions":{"ask":["Read(.env)","Read(hard*)","Read(secrets/**)"]}}`,
		"planned.json":               `{"permissions":{"defaultMode":"plan"}}`,
		"uncontained.json":           `{"sandbox":{"enabled":false,"onUnavailable":"deny"}}`,
		"broken.json":                `{"permissions": [ }`,
		"plan.json":                  `{"sandbox":{"enabled":false,"onUnavailable":"allow"},"permissions":{"defaultMode":"plan"}}`,
		"allowed.json": `{"sandbox":{"enabled":false,"onUnavailable":"allow"},"permissions":{"defaultMode":"default",
			"allow":["Bash(git:*)","Bash(cp:*)","Bash(mv:*)","Bash(ln:*)","Bash(mkdir:*)","Bash(install:*)","Bash(dd:*)",
			"Bash(tar:*)","Bash(zip:*)","Bash(unzip:*)","Bash(openssl:*)","Bash(gcc:*)","Bash(go:*)","Bash(curl:*)","Bash(split:*)","Bash(tee:*)","Bash(printf:*)"]}}`,
	} {
		path := filepath.Join(w.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"new\nline", "\x1b[31mred\x1b[0m", "bad\xff\xfeutf8", "-rf", "a b", "$(touch pwned)",
		"`touch pwned`", ";touch pwned;", "\u202egnp.txt", "tab\there"} {
		path := filepath.Join(w.ws, "names", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("needle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) git(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "src", "README.md", ".gitignore", "locked", "keep.txt"},
		{"commit", "-q", "-m", "start"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

func (w *world) links(t *testing.T) {
	t.Helper()
	for _, l := range [][2]string{
		{"link", ".env"}, {"linkdir", "secrets"}, {"chain3", "chain2"}, {"chain2", "chain1"}, {"chain1", filepath.Join(w.ws, ".env")},
		{"out", "../outside"}, {"loop", "loop"}, {"lockedlink", "locked"}, {"dangling", "../outside/made.txt"}, {"danglingdir", "../outside/madedir"},
		{"fifolink", "fifo"}, {"zero", "/dev/zero"}, {"null", "/dev/null"},
	} {
		if err := os.Symlink(l[1], filepath.Join(w.ws, l[0])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(w.ws, "hardlinks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, l := range [][2]string{{"hard.txt", ".env"}, {"hardlinks/two.txt", "secrets/zebra9f3.key"},
		{"hardlocked.txt", "locked/a.txt"}} {
		if err := os.Link(filepath.Join(w.ws, l[1]), filepath.Join(w.ws, l[0])); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(w.ws, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	name := filepath.Join(w.ws, "socket")
	if len(name) < 100 {
		if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}); err != nil {
			t.Fatal(err)
		}
	} else if l, err := net.Listen("unix", "socket"); err == nil {
		l.Close()
	}
}

// ordinaryUser runs hosts that must not be root's. Any number does that owns nothing.
const ordinaryUser = 48_879

// giveTo makes everything in the world a user's own.
func (w *world) giveTo(t *testing.T, user int) {
	t.Helper()
	w.user = user
	err := filepath.WalkDir(w.root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, user, user)
	})
	for dir := filepath.Dir(w.root); err == nil && dir != filepath.Clean(os.TempDir()) &&
		dir != "/"; dir = filepath.Dir(dir) {
		err = os.Chown(dir, user, user) // the way there is open to its owner only
	}
	if err != nil {
		t.Fatal(err)
	}
	w.before = w.snapshot()
}

// as makes a process the world's user's.
func (w *world) as(cmd *exec.Cmd) {
	if w.user != 0 {
		id := uint32(w.user)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	if w.through != nil {
		w.through(cmd)
	}
}

// disguises are the forms in which a program may print a text.
func disguises(text string) []string {
	forms := []string{text, strings.ToLower(text), hex.EncodeToString([]byte(text)), reversed(text), rot13(text),
		spaced(text)}
	for pad := range 3 { // base64 has three alignments; the first and last group hold neighbours
		enc := base64.RawStdEncoding.EncodeToString(append(make([]byte, pad), text...))
		forms = append(forms, enc[4:len(enc)-4])
	}
	return forms
}

func spaced(s string) string { return strings.Join(strings.Split(s, ""), "\x00") }

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

func rot13(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case 'A' <= r && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, s)
}

// dumped matches what dump programs put between the bytes: line breaks (in JSON), offsets, blanks.
var dumped = regexp.MustCompile(`\\n(0x)?[0-9a-f]{6,8}:?\b|\\[nt]|\s`)

// leaks says what of the world's secrets is in a text. The name of a denied file may be repeated to who said it.
func (w *world) leaks(text, args string) string {
	squeezed := dumped.ReplaceAllString(text, "")
	for form, what := range w.forms {
		if strings.Contains(text, form) || strings.Contains(squeezed, form) {
			return what
		}
	}
	if args != "" && !strings.Contains(args, `"command"`) && strings.Contains(text, canaryOutside) {
		return "a file outside of the root"
	}
	if strings.Contains(text, deniedName) && !strings.Contains(args, "zebra") {
		return "a denied name"
	}
	return ""
}

// protected are the files and directories that no row may change.
var protectedPaths = []string{
	"ws/.env", "ws/secrets", "ws/locked", "ws/keep.txt", "ws/.claude/settings.json", "ws/.claude/settings.local.json", "ws/.toolhost",
	"ws/.mcp.json", "ws/.git/hooks", "ws-evil", "outside", "home/.ssh", "home/.bashrc", "home/.claude", "home/config",
	"ws/.envrc", "ws/src/.envrc", "ws/.vscode", "ws/.husky", "ws/new.lock", "ws/generated",
	"ws/pwned", "pwned", "home/pwned", "x2", "moved", "uncontained.json",
}

// snapshot describes everything that must not change.
func (w *world) snapshot() map[string]string {
	all := map[string]string{}
	paths := protectedPaths
	if w.whole {
		paths = []string{"."}
	}
	for _, p := range paths {
		top := filepath.Join(w.root, p)
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // absent, which is how it must stay
			}
			if cache := filepath.Join(w.home, ".cache"); w.whole && d.IsDir() {
				switch {
				case path == filepath.Dir(w.state), path == filepath.Join(cache, "toolhost", "probe"):
					return fs.SkipDir
				case strings.HasPrefix(path, cache): // the host makes directories for temporary files
					return nil
				}
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			text := info.Mode().String()
			if info.Mode().IsRegular() {
				raw, _ := os.ReadFile(path) // the mode alone tells of one that cannot be read
				text += " " + string(raw)
			}
			all[path] = text
			return nil
		})
	}
	if text, err := os.ReadFile(filepath.Join(w.ws, ".git", "config")); err == nil &&
		strings.Contains(string(text), "fsmonitor") {
		all[".git/config"] = "executes something"
	}
	for _, name := range []string{"/etc/toolhost-attack", "/etc/cron.d/toolhost-attack", "/etc/claude-code"} {
		if _, err := os.Lstat(name); err == nil {
			all[name] = "exists"
		}
	}
	return all
}

// changes says what has changed that must not, and takes it as the new state, so that each row answers for itself.
func (w *world) changes() []string {
	now := w.snapshot()
	var all []string
	for path, text := range now {
		if old, ok := w.before[path]; !ok {
			all = append(all, fmt.Sprintf("%s was made", path))
		} else if old != text {
			all = append(all, fmt.Sprintf("%s was changed: %.80q became %.80q", path, old, text))
		}
	}
	for path := range w.before {
		if _, ok := now[path]; !ok {
			all = append(all, fmt.Sprintf("%s was removed", path))
		}
	}
	w.before = now
	slices.Sort(all)
	return all
}
