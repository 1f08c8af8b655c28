package attack

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
)

// cacheFiles are caches of a person.
var cacheFiles = map[string]string{
	".cache/go-build/00/x-d": "object\n", ".cache/pip/http/x": "wheel\n", "go/pkg/mod/example.test/a@v1.0.0/a.go": "package a\n",
	".cargo/registry/src/a/lib.rs": "// a\n", ".cargo/credentials.toml": "SECRET=VALUE\n", ".m2/repository/a.jar": "jar\n", ".gradle/caches/a": "a\n",
	".npm/_cacache/a": "a\n", ".local/lib/python3/a.py": "a\n", ".local/bin/tool": "#!/bin/sh\necho PWNED\n", ".gem/a": "a\n", ".nuget/packages/a": "a\n",
	".local/share/pnpm/a": "a\n", ".bun/install/cache/a": "a\n", ".yarn/berry/a": "a\n",
}

// cacheHome is a home directory with caches.
type cacheHome struct {
	t    *testing.T
	home string
}

func newCacheHome(t *testing.T) *cacheHome {
	t.Helper()
	host.NeedsContained(t)
	h := &cacheHome{t: t, home: host.TempDir(t)}
	for name, text := range cacheFiles {
		host.MustWrite(t, filepath.Join(h.home, name), text)
	}
	host.Must(t, os.Chmod(filepath.Join(h.home, ".local/bin/tool"), 0o755))
	return h
}

// start starts a host on a workspace of its own.
func (h *cacheHome) start(ws, settings string) *host.Session {
	h.t.Helper()
	file := filepath.Join(host.TempDir(h.t), "settings.json")
	host.MustWrite(h.t, file, settings)
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	h.t.Cleanup(cancel)
	env := append(host.CleanEnv(h.home), "PATH="+filepath.Join(h.home, ".local/bin")+":"+os.Getenv("PATH"))
	flags := []string{"--root", ws, "--settings", file, "--state-dir", filepath.Join(h.home, "state")}
	s, err := host.StartHost(ctx, host.StdioModern, ws, env, flags...)
	host.Must(h.t, err)
	h.t.Cleanup(func() { _ = s.Cmd.Process.Kill() })
	return &host.Session{Host: s, T: h.t, Ctx: ctx}
}

func (h *cacheHome) files() map[string]string {
	h.t.Helper()
	list := map[string]string{}
	host.Must(h.t, filepath.WalkDir(h.home, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(h.home, path)
		if err != nil || relErr != nil {
			return fmt.Errorf("%w, %w", err, relErr)
		}
		if rel == ".cache/toolhost" || rel == "state" || rel == "config" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil || rel == "." || rel == ".cache" { // in which the host makes its own
			return err
		}
		text := []byte{}
		if e.Type().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		list[rel] = fmt.Sprint(info.Mode(), info.ModTime(), string(text))
		return nil
	}))
	return list
}

const allowBash = `{"permissions":{"allow":["Bash"]}}`

// poison changes all that a command finds in caches, and leaves files there that programs obey.
const poison = `cd ~; for dir in .cache go .cargo .m2 .gradle .npm .local .gem .nuget .bun .yarn; do
find $dir -type f 2>/dev/null | while read -r f; do
	echo PWNED >> "$f"; chmod 777 "$f"; touch -d @0 "$f"; mv "$f" "$f.moved"; echo PWNED > "$f"; ln "$f" "$f.link"; ln -s /etc/passwd "$f.sym"; done
find $dir -depth -type d 2>/dev/null | while read -r d; do
	echo PWNED > "$d/planted"; chmod 777 "$d"; setfattr -n user.overlay.opaque -v y "$d"; setfattr -n user.overlay.redirect -v / "$d"; mv "$d" "$d.moved"; done
done 2>/dev/null
printf '[build]\nrustc-wrapper = "/tmp/evil"\n' > ~/.cargo/config.toml; rm -rf ~/go ~/.npm ~/.m2; ln -s / ~/.m2; grep -rs SECRET ~/.cargo; true`

// TestAttackCaches: what a command does to caches changes no file of the person, and reaches neither another
// workspace, another caller, a hook nor a server. A secret among the caches stays hidden, and a program that a rule
// denies cannot be copied there.
func TestAttackCaches(t *testing.T) {
	h := newCacheHome(t)
	before := h.files()
	ws, other := host.TempDir(t), host.TempDir(t)
	s := h.start(ws, allowBash)
	out, _ := s.Try("Bash", host.Args{"command": poison})
	if strings.Contains(out, "SECRET") {
		t.Errorf("the secret is shown: %s", out)
	}
	const look = `grep -rsl PWNED ~/.cache ~/go ~/.cargo ~/.m2 ~/.gradle ~/.npm ~/.local/lib ~/.gem ~/.nuget ~/.bun ~/.yarn; find ~/ -name 'planted' -o -name '*.moved' 2>/dev/null | grep .`
	if out, _ := s.Try("Bash", host.Args{"command": look}); !strings.Contains(out, "planted") {
		t.Skipf("commands cannot write in caches here: %s", out)
	}
	for _, command := range []string{
		`grep -rs SECRET ~/.cargo ~/.cargo.moved; mv ~/.cargo/credentials.toml ~/.cargo/c; cat ~/.cargo/c`,
		`cat ~/state/overlays/*/*/upper/planted; ls ~/state/overlays && echo SECRET`,
	} {
		if out, _ := s.Try("Bash", host.Args{"command": command}); strings.Contains(out, "SECRET") ||
			strings.Contains(out, "PWNED") {
			t.Errorf("%s: %s", command, out)
		}
	}
	another := h.start(other, allowBash)
	if out, _ := another.Try("Bash", host.Args{"command": look}); strings.Contains(out, h.home) {
		t.Errorf("another workspace finds %s", out)
	}
	another.End()
	s.End()
	hooked := h.start(ws, `{"permissions":{"allow":["Bash"]},"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":`+
		quoted(t, `if [ -e ~/.cache/planted ] || [ -e ~/.cargo/config.toml ]; then echo the hook sees it >&2; exit 2; fi`)+`}]}]}}`)
	out, _ = hooked.Try("Bash", host.Args{"command": "ls ~/.cache/planted"})
	if strings.Contains(out, "the hook sees it") || !strings.Contains(out, "/.cache/planted\n") {
		t.Errorf("with a hook: %s", out)
	}
	hooked.End()
	denied := h.start(host.TempDir(t), `{"permissions":{"allow":["Bash"],"deny":["Bash(tool:*)"]}}`)
	for _, command := range []string{
		"~/.local/bin/tool",
		"cp ~/.local/bin/tool ~/.local/bin/other; ~/.local/bin/other",
		"mv ~/.local/bin ~/.local/lib/bin; ~/.local/lib/bin/t*",
		"cd ~/.local/bin; ln t??l x; ./x; ln -s t??l y; ./y",
	} {
		if out, _ := denied.Try("Bash", host.Args{"command": command}); strings.Contains(out, "PWNED") {
			t.Errorf("%s: %s", command, out)
		}
	}
	denied.End()
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("the person's files changed (-before +after):\n%s", host.Clip(diff, 2000))
	}
}
