//go:build unix

package attack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// A control layout is a way in which the host comes to a file that it obeys.
type controlLayout struct {
	name  string
	files []string    // that hold settings, in the world
	links [][2]string // what a link says, and where it is
	hard  [2]string   // a file and another name of it
	known string      // the name by which the host knows the file
	steps []string    // by which it comes there, in the workspace
	flags []string
}

var controlLayouts = []controlLayout{
	{name: "user file", files: []string{"ws/dot/settings.json"}, links: [][2]string{{"$ROOT/ws/dot/settings.json", "home/.claude/settings.json"}},
		known: "home/.claude/settings.json", steps: []string{"dot/settings.json", "dot"}},
	{name: "user directory", files: []string{"ws/dot/claude/settings.json"}, links: [][2]string{{"$ROOT/ws/dot/claude", "home/.claude"}},
		known: "home/.claude/settings.json", steps: []string{"dot/claude/settings.json", "dot/claude", "dot"}},
	{name: "user chain", files: []string{"ws/b/s.json"}, links: [][2]string{{"../b/s.json", "ws/a/middle"}, {"$ROOT/ws/a/middle", "home/.claude/settings.json"}},
		known: "home/.claude/settings.json", steps: []string{"b/s.json", "a/middle", "a", "b"}},
	{name: "user chain of directories", files: []string{"ws/v1/settings.json", "ws/v2/other.txt"}, links: [][2]string{{"v1", "ws/current"}, {"$ROOT/ws/current", "home/.claude"}},
		known: "home/.claude/settings.json", steps: []string{"v1/settings.json", "current/settings.json", "current", "v1"}},
	{name: "user chain out of the root", files: []string{"else/s.json"}, links: [][2]string{{"../../else/s.json", "ws/a/middle"}, {"$ROOT/ws/a/middle", "home/.claude/settings.json"}},
		known: "home/.claude/settings.json", steps: []string{"a/middle", "a"}},
	{name: "project file", files: []string{"ws/conf/settings.json"}, links: [][2]string{{"../conf/settings.json", "ws/.claude/settings.json"}},
		known: "ws/.claude/settings.json", steps: []string{"conf/settings.json", ".claude/settings.json", ".claude", "conf"}},
	{name: "project directory", files: []string{"ws/conf/settings.json"}, links: [][2]string{{"conf", "ws/.claude"}},
		known: "ws/.claude/settings.json", steps: []string{"conf/settings.json", ".claude/settings.json", ".claude", "conf"}},
	{name: "local file", files: []string{"ws/.claude/settings.json", "ws/mine/l.json"}, links: [][2]string{{"../mine/l.json", "ws/.claude/settings.local.json"}},
		known: "ws/.claude/settings.local.json", steps: []string{"mine/l.json", ".claude/settings.local.json", "mine"}},
	{name: "our own directory", files: []string{"ws/th/toolhost.json"}, links: [][2]string{{"$ROOT/ws/th", "home/config/toolhost"}},
		known: "home/config/toolhost/toolhost.json", steps: []string{"th/toolhost.json", "th"}},
	{name: "our own file", files: []string{"ws/th/t.json"}, links: [][2]string{{"../th/t.json", "ws/.toolhost/toolhost.json"}},
		known: "ws/.toolhost/toolhost.json", steps: []string{"th/t.json", ".toolhost/toolhost.json", ".toolhost", "th"}},
	{name: "a file of the command line", files: []string{"ws/etc/given.json"}, known: "ws/etc/given.json", steps: []string{"etc/given.json", "etc"},
		flags: []string{"--settings", "$ROOT/ws/etc/given.json"}},
	{name: "a hard link", files: []string{"home/.claude/settings.json"}, hard: [2]string{"home/.claude/settings.json", "ws/dot/copy.json"},
		known: "home/.claude/settings.json", steps: []string{"dot/copy.json"}},
}

// evilSettings would have the host run something outside of every sandbox.
const evilSettings = `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch $ROOT/pwned"}]}]}}`

// put makes the files and links of a layout.
func (l controlLayout) put(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(host.TempDir(t))
	host.Must(t, err)
	w := &world{root: root, ws: filepath.Join(root, "ws"), home: filepath.Join(root, "home"),
		state: filepath.Join(root, "home", "state", "toolhost")}
	for _, dir := range []string{"ws/other", "ws/evil", "home"} {
		host.Must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, name := range append([]string{"ws/other/f.txt"}, l.files...) {
		path := filepath.Join(root, name)
		host.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		host.Must(t, os.WriteFile(path, []byte("{}\n"), 0o644))
		host.Must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "beside.txt"), []byte("beside\n"), 0o644))
		host.Must(t, os.WriteFile(filepath.Join(w.ws, "evil", filepath.Base(path)), []byte(w.filled(evilSettings)), 0o644))
	}
	host.Must(t, os.WriteFile(filepath.Join(w.ws, "evil", "settings.json"), []byte(w.filled(evilSettings)), 0o644))
	for _, link := range l.links {
		path := filepath.Join(root, link[1])
		host.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		host.Must(t, os.Symlink(w.filled(link[0]), path))
	}
	if l.hard[0] != "" {
		host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, l.hard[1])), 0o755))
		host.Must(t, os.Link(filepath.Join(root, l.hard[0]), filepath.Join(root, l.hard[1])))
	}
	return w
}

func (w *world) filled(text string) string { return strings.ReplaceAll(text, "$ROOT", w.root) }

// way describes everything that leads to the file that the host knows by a name, and the file.
func (l controlLayout) way(w *world) string {
	var out []string
	for _, step := range append([]string{filepath.Join(w.root, l.known)}, l.steps...) {
		if !filepath.IsAbs(step) {
			step = filepath.Join(w.ws, step)
		}
		info, err := os.Lstat(step)
		switch {
		case err != nil:
			out = append(out, step+": gone")
		case info.Mode()&fs.ModeSymlink != 0:
			link, _ := os.Readlink(step)
			out = append(out, step+" -> "+link)
		default:
			out = append(out, step+": "+info.Mode().Type().String())
		}
	}
	text, err := os.ReadFile(filepath.Join(w.root, l.known))
	return strings.Join(append(out, string(text), fmt.Sprint(err)), "\n")
}

// controlAttacks are calls against one step, whose name commands say, or make up unless they are to be plain.
func controlAttacks(step string, plainOnly bool) (calls [][2]string) {
	add := func(tool string, args map[string]any) {
		raw, err := json.Marshal(args)
		if err != nil {
			panic(err) // strings
		}
		calls = append(calls, [2]string{tool, string(raw)})
	}
	for _, name := range []string{step, "./other/../" + step, "evil/alias/" + step} {
		add("Write", map[string]any{"file_path": name, "content": evilSettings})
		add("Edit", map[string]any{"file_path": name, "old_string": "{}", "new_string": evilSettings})
	}
	add("NotebookEdit", map[string]any{"notebook_path": step, "new_source": evilSettings, "edit_mode": "insert"})
	for _, command := range []string{
		"cat evil/settings.json > %s", "cp evil/settings.json %s", "tee %s < evil/settings.json", "mv %s gone", "rm -rf %s",
		"ln -sfn evil %s", "ln -sf ../evil/settings.json %s", "cp -f --remove-destination evil/settings.json %s", "sed -i 's/{}/x/' %s", "truncate -s 0 %s",
		"dd if=evil/settings.json of=%s", "rm -rf %[1]s; cp -r evil %[1]s", "mv -T evil %s", "mv %[1]s gone && mkdir -p %[1]s && cp evil/* %[1]s",
	} {
		name, before := step, ""
		if !plainOnly {
			name, before = `"$f"`, "f=$(base64 -d <<< "+base64.StdEncoding.EncodeToString([]byte(step))+"); "
		}
		add("Bash", map[string]any{"command": before + strings.NewReplacer("%[1]s", name, "%s", name).Replace(command)})
	}
	return calls
}

// A controlBackend is what holds the commands of a host that is attacked.
type controlBackend struct {
	name  string
	setUp func(t *testing.T, w *world) (flags []string)
	plain bool // only what a command says by name is held
	user  int

	through func(*exec.Cmd) // how it is started

	turn, of int // which of the attacks it meets, where several backends share them
}

func (b controlBackend) attack(t *testing.T, step int) {
	for _, l := range samples.Of(controlLayouts, step) {
		t.Run(b.name+"/"+strings.ReplaceAll(l.name, " ", "-"), func(t *testing.T) { attackControl(t, b, l) })
	}
}

func attackControl(t *testing.T, b controlBackend, l controlLayout) {
	w := l.put(t)
	w.through = b.through
	host.Must(t, os.Symlink("..", filepath.Join(w.ws, "evil", "alias")))
	var flags []string
	for _, f := range append([]string{"--root", w.ws}, l.flags...) {
		flags = append(flags, w.filled(f))
	}
	if b.setUp != nil {
		flags = append(flags, b.setUp(t, w)...)
	}
	if b.user != 0 {
		w.giveTo(t, b.user)
	}
	h := w.host(t, host.StdioModern, flags...)
	before := l.way(w)
	n := 0
	for s, step := range l.steps {
		for i, c := range controlAttacks(step, b.plain) {
			if (i+s+b.turn)%max(b.of, 1) != 0 {
				continue
			}
			n++
			said := h.call(t, c[0], c[1], fmt.Sprint(n))
			if now := l.way(w); now != before {
				t.Fatalf("%s %s: it was\n%s\nand is\n%s\n%s", c[0], c[1], before, now, said.text)
			}
		}
	}
	for i, step := range l.steps {
		if dir := filepath.Dir(step); strings.Contains(step, "/") && !strings.HasPrefix(step, ".") &&
			dir != "current" && dir != "conf" && l.name != "our own directory" {
			beside := filepath.Join(dir, fmt.Sprintf("new%d.txt", i))
			for _, args := range []string{fmt.Sprintf(`{"file_path":%q,"content":"x"}`, beside),
				`{"command":"echo y >> ` + beside + ` && mv ` + beside + ` ` + beside + `.2 && rm ` + beside + `.2 && mkdir ` + beside + ` && rmdir ` + beside + `"}`} {
				tool := "Write"
				if strings.Contains(args, "command") {
					tool = "Bash"
				}
				if said := h.call(t, tool, args, "beside"+tool+fmt.Sprint(i)); !said.ok {
					t.Errorf("honest work: %s %s: %s", tool, args, said.text)
				}
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(w.root, "pwned")); err == nil {
		t.Error("something ran outside of the sandbox")
	}
	w.before = w.snapshot()
	w.end(t, h)
}
