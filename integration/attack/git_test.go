//go:build slow && unix

package attack

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// gitTools begin each script that makes a repository. P is a program that tells that it ran.
const gitTools = `set -e
plain() { git init -q "$1"; (cd "$1"; echo a > a; echo c > c; git add .; git commit -qm a; echo aa > a; git commit -qam b; echo bb >> a); }
config() { printf '%s\n' "$2" >> "$1/config"; }
evil() { mkdir -p "$1/hooks" "$1/info"; echo 'a diff=x' > "$1/info/attributes"; config "$1" "[core]
	fsmonitor = $P
[diff]
	external = $P
[diff \"x\"]
	textconv = $P"; ln -sf "$P" "$1/hooks/post-index-change"; }
barehere() { plain .x; cp -r .x/.git/HEAD .x/.git/objects .x/.git/refs .x/.git/index .; cp .x/a .x/c .; printf '[core]\n\trepositoryformatversion = 0\n\tworktree = %s\n' "$PWD" > config; rm -r .x; evil .; }
attribute() { echo "a $1" > .gitattributes; }
signed() { tree=$(git write-tree); { git cat-file commit HEAD | sed '/^$/,$d'; printf 'gpgsig -----BEGIN %s SIGNATURE-----\n \n x\n -----END %s SIGNATURE-----\n\nx\n' "$1" "$1"; } > .c; git update-ref HEAD $(git hash-object -t commit -w .c); }
own() { cd "$1"; plain .; }
elsewhere() { plain .x; mv .x/.git "$1"; mv .x/a .x/c .; rm -r .x; evil "$1"; }
`

// A gitLayout is a directory in which git may run a program that somebody else has put there. The script makes it in the
// current directory; in is where git is started, "" for the directory itself.
type gitLayout struct{ name, script, in string }

var gitLayouts = []gitLayout{
	{"settings", `plain .; evil .git`, ""},
	{"settings-above", `plain .; evil .git; mkdir -p d/e`, "d/e"},
	{"fsmonitor", `plain .; config .git "[core] fsmonitor = $P"`, ""},
	{"fsmonitor-dotted", `plain .; config .git "[CORE]FSMonitor=$P"`, ""},
	{"fsmonitor-continued", `plain .; config .git "[core]
	fsmonitor = \\
$P"`, ""},
	{"fsmonitor-dos", `plain .; printf '[core]\r\n\tfsmonitor\t=\t%s\r\n' "$P" >> .git/config`, ""},
	{"fsmonitor-mark", `plain .; { printf '\357\273\277[core]\nfsmonitor=%s\n' "$P"; cat .git/config; } > x; mv x .git/config`, ""},
	{"worktree-settings", `plain .; git config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = %s\n' "$P" > .git/config.worktree`, ""},
	{"include", `plain .; evil .git; mv .git/config x; git config -f .git/config include.path ../x`, ""},
	{"include-if", `plain .; evil .git; mv .git/config x; git config -f .git/config includeIf.gitdir:/.path ../x`, ""},
	{"include-twice", `plain .; evil .git; mv .git/config x; git config -f y include.path x; git config -f .git/config include.path ../y`, ""},
	{"settings-linked", `plain .; evil .git; mv .git/config x; ln -s ../x .git/config`, ""},
	{"hook", `plain .; ln -s "$P" .git/hooks/post-index-change`, ""},
	{"hooks-linked", `plain .; mkdir h; ln -s "$P" h/post-index-change; rm -r .git/hooks; ln -s ../h .git/hooks`, ""},
	{"hooks-path", `plain .; mkdir h; ln -s "$P" h/post-index-change; git config core.hooksPath h`, ""},
	{"commondir", `plain .; evil .git; mkdir x; mv .git/config .git/objects .git/refs .git/hooks x; echo ../x > .git/commondir`, ""},
	{"commondir-absolute", `plain .; evil .git; mkdir x; mv .git/config .git/objects .git/refs .git/hooks x; echo "$PWD/x" > .git/commondir`, ""},
	{"commondir-and-worktree-settings", `plain .; git config extensions.worktreeConfig true; mkdir x; mv .git/config .git/objects .git/refs x; echo ../x > .git/commondir; printf '[core]\n\tfsmonitor = %s\n' "$P" > .git/config.worktree`, ""},
	{"commondir-hook", `plain .; mkdir x; mv .git/config .git/objects .git/refs x; mkdir x/hooks; ln -s "$P" x/hooks/post-index-change; echo ../x > .git/commondir`, ""},
	{"bare", `barehere`, ""},
	{"bare-below", `barehere; mkdir -p d`, "d"},
	{"bare-empty-git", `barehere; mkdir .git`, ""},
	{"bare-empty-git-below", `barehere; mkdir -p .git d`, "d"},
	{"bare-git-with-settings", `barehere; mkdir .git; echo '[core]' > .git/config`, ""},
	{"bare-git-without-refs", `barehere; git init -q .y; rm -r .y/.git/refs; mv .y/.git .`, ""},
	{"bare-git-without-objects", `barehere; git init -q .y; rm -r .y/.git/objects; mv .y/.git .`, ""},
	{"bare-git-wrong-head", `barehere; git init -q .y; echo x > .y/.git/HEAD; mv .y/.git .`, ""},
	{"bare-git-linked-head", `barehere; git init -q .y; ln -sf x .y/.git/HEAD; mv .y/.git .`, ""},
	{"bare-git-no-head", `barehere; git init -q .y; rm .y/.git/HEAD; mv .y/.git .`, ""},
	{"bare-git-wrong-commondir", `barehere; git init -q .y; echo nowhere > .y/.git/commondir; mv .y/.git .`, ""},
	{"bare-git-empty-commondir", `barehere; git init -q .y; : > .y/.git/commondir; mv .y/.git .`, ""},
	{"bare-git-closed", `barehere; git init -q .y; chmod 0600 .y/.git/objects; mv .y/.git .`, ""},
	{"bare-git-dangling", `barehere; ln -s nowhere .git`, ""},
	{"bare-git-loop", `barehere; ln -s .git .git`, ""},
	{"bare-commondir", `barehere; mkdir x; mv config refs objects hooks info x; echo x > commondir`, ""},
	{"bare-in-plain", `plain .; mkdir d; cd d; barehere`, "d"},
	{"git-linked", `elsewhere g; ln -s g .git`, ""},
	{"git-file", `elsewhere g; echo "gitdir: g" > .git`, ""},
	{"git-file-absolute", `elsewhere g; echo "gitdir: $PWD/g" > .git`, ""},
	{"git-file-dos", `elsewhere g; printf 'gitdir: g\r\n' > .git`, ""},
	{"git-file-through-link", `elsewhere g; mkdir -p ok/y; git init -q ok/g; ln -s ../../y d 2>/dev/null || true; mkdir y; ln -s ../y ok/l; echo "gitdir: ok/l/../g" > .git`, ""},
	{"git-file-linked", `elsewhere g; echo "gitdir: g" > x; ln -s x .git`, ""},
	{"work-tree", `plain m; git -C m worktree add -q ../w; evil m/.git`, "w"},
	{"work-tree-settings", `plain m; git -C m worktree add -q ../w; git -C m config extensions.worktreeConfig true; git -C w config --worktree core.fsmonitor "$P"`, "w"},
	{"work-tree-hook", `plain m; git -C m worktree add -q ../w; ln -s "$P" m/.git/hooks/post-index-change; touch w/c`, "w"},
	{"work-tree-blank", `plain m; git -C m worktree add -q ../w; cp -r m/.git x; mv x 'm/.git/worktrees/.. '; echo '../.. ' > m/.git/worktrees/w/commondir; evil 'm/.git/worktrees/.. '`, "w"},
	{"work-tree-linked", `plain m; git -C m worktree add -q ../w; plain n; evil n/.git; cp -r m/.git/worktrees n/.git; mkdir q; ln -s ../n/.git q/l; echo "gitdir: $PWD/w/../q/l/worktrees/w" > w/.git; echo "$PWD/w/.git" > n/.git/worktrees/w/gitdir`, "w"},
	{"submodule", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; evil s/.git`, ""},
	{"submodule-itself", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; evil s/.git`, "s"},
	{"submodule-file", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; git submodule absorbgitdirs -q 2>/dev/null || { mkdir .git/modules; mv s/.git .git/modules/s; echo 'gitdir: ../.git/modules/s' > s/.git; git -C s config core.worktree ../../../s; }; evil .git/modules/s`, ""},
	{"submodule-nested", `plain .; plain s; plain s/t; git -C s add t 2>/dev/null; git -C s commit -qm t; git add s 2>/dev/null; git commit -qm s; evil s/t/.git`, ""},
	{"submodule-work-tree", `plain .; plain s; plain x; plain x/t; git -C x add t 2>/dev/null; git -C x commit -qm t; rm -r s/.git; mv x/.git s; git -C s config core.worktree "$PWD/x"; git add s 2>/dev/null; git commit -qm s; evil x/t/.git`, ""},
	{"submodule-packed", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; git update-index --index-version 4; evil s/.git`, ""},
	{"submodule-split", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; git update-index --split-index; evil s/.git`, ""},
	{"submodule-commondir", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; cd s; evil .git; mkdir x; mv .git/config .git/objects .git/refs x; echo ../x > .git/commondir`, ""},
	{"submodule-worktree-settings", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; git -C s config extensions.worktreeConfig true; git -C s config --worktree core.fsmonitor "$P"`, ""},
	{"submodule-linked", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; mv s/.git g; ln -s ../g s/.git; evil g`, ""},
	{"submodule-of-work-tree", `plain m; plain m/s; git -C m add s 2>/dev/null; git -C m commit -qm s; git -C m worktree add -q ../w; rmdir w/s; mv m/s w/s; evil w/s/.git`, "w"},
	{"submodule-in-history", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; git rm -q --cached s; git commit -qm r; evil s/.git; git config diff.submodule diff`, ""},
	{"submodule-in-history-by-option", `plain .; plain s; git add s 2>/dev/null; git commit -qm s; git rm -q --cached s; git commit -qm r; evil s/.git`, ""},
	{"external-diff", `plain .; git config diff.external "$P"`, ""},
	{"textconv", `plain .; attribute diff=x; git config diff.x.textconv "$P"`, ""},
	{"textconv-in-git", `plain .; echo 'a diff=x' > .git/info/attributes; git config diff.x.textconv "$P"`, ""},
	{"textconv-by-file", `plain .; echo 'a diff=x' > t; git config core.attributesFile t; git config diff.x.textconv "$P"`, ""},
	{"diff-command", `plain .; attribute diff=x; git config diff.x.command "$P"`, ""},
	{"clean", `plain .; attribute filter=x; git config filter.x.clean "$P"`, ""},
	{"process", `plain .; attribute filter=x; git config filter.x.process "$P"; git config filter.x.required true`, ""},
	{"merge-driver", `plain .; git stash -q; git checkout -qb x; echo x > a; git commit -qam x; git checkout -q -; echo y > a; git commit -qam y; git merge -q x || true; echo m > a; git commit -qam m; echo 'a merge=x' > .git/info/attributes; git config merge.x.driver "$P"`, ""},
	{"signature", `plain .; signed PGP; git config log.showSignature true; git config gpg.program "$P"`, ""},
	{"signature-kind", `plain .; signed PGP; git config log.showSignature true; git config gpg.openpgp.program "$P"`, ""},
	{"signature-ssh", `plain .; signed SSH; git config log.showSignature true; echo 't@e ssh-ed25519 AAAA' > s; git config gpg.ssh.allowedSignersFile s; git config gpg.ssh.program "$P"`, ""},
	{"promisor", `plain .; git -C . config extensions.partialClone o; git config core.repositoryFormatVersion 1; git config remote.o.url "$PWD"; git config remote.o.uploadpack "$P"; rm .git/objects/*/$(git rev-parse HEAD:a | cut -c3-)`, ""},
	{"promisor-ssh", `plain .; git config remote.o.promisor true; git config remote.o.url ssh://x/y; git config core.sshCommand "$P"; rm .git/objects/*/$(git rev-parse HEAD:a | cut -c3-)`, ""},
	{"promisor-ext", `plain .; git config remote.o.promisor true; git config remote.o.url "ext::$P"; git config protocol.ext.allow always; rm .git/objects/*/$(git rev-parse HEAD:a | cut -c3-)`, ""},
	{"inside-git", `plain .; evil .git`, ".git"},
	{"inside-hooks", `plain .; evil .git`, ".git/hooks"},
	{"option-bare", `barehere; plain y; mv y/.git .; rm -r y; config . "[core]
	bare = true
[diff \"x\"]
	textconv = $P"; git config -f config --unset core.worktree; rm -f hooks/post-index-change`, ""},
}

// gitLooking are commands of git that only read. %s is the directory.
var gitLooking = []string{
	"git -C %s status", "cd %s && git status --short", "git -C %s diff", "cd %s && git diff HEAD | cat", "git -C %s show HEAD", "(cd %s; git log -p -2)",
	"git -C %s log -1 --show-signature", "git -C %s log -p -3 --submodule=diff", "cd %s && git --bare show HEAD", "git -C %s log -p -m --remerge-diff -1", "git -C %s describe --always --dirty",
	"cd %s; git ls-files -m", "git -C %s blame a", "git -C %s diff-index -p HEAD", "cd %s && printf 'a\\n' | xargs git diff --",
}

// TestAttackGit lets git, told only to read, meet repositories that make it run a program. In plan mode, and where a
// person would be asked, it never does; with a sandbox it may do so in there. Every layout is one that works on git
// alone.
func TestAttackGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	type kind struct {
		name, settings string
		user           int
		inside         bool // the program may run in the sandbox
	}
	kinds := []kind{
		{name: "plan-uncontained", settings: `{"sandbox":{"enabled":false,"onUnavailable":"allow"},"permissions":{"defaultMode":"plan"}}`},
		{name: "default-uncontained", settings: `{"sandbox":{"enabled":false,"onUnavailable":"allow"},"permissions":{"defaultMode":"default"}}`},
	}
	if host.Contained(t) {
		kinds = append(kinds, kind{name: "plan", settings: `{"permissions":{"defaultMode":"plan"}}`},
			kind{name: "default", settings: `{"permissions":{"defaultMode":"default"}}`, inside: true})
	}
	if os.Geteuid() == 0 { // last, as everything becomes the user's
		kinds = append(kinds, kind{name: "plan-uncontained-user", settings: kinds[0].settings, user: ordinaryUser})
	}
	g := newGitWorld(t) // the hosts share it, as what they run must only read
	for _, l := range gitLayouts {
		g.layout(t, l)
		if samples.Whole() {
			g.works(t, l)
		}
	}
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			g.user = k.user
			host.MustWrite(t, filepath.Join(g.root, "settings.json"), k.settings)
			g.giveTo(t)
			h := g.host(t, filepath.Join(g.root, "settings.json"))
			for n, l := range gitLayouts {
				for j, command := range gitLooking {
					if step := samples.Step(3 * min(2+4*i, 10)); (j+n)%step != 0 {
						continue // the first host judges most of them
					}
					g.touch(t, l)
					said := g.call(t, h, fmt.Sprintf(command, filepath.Join(l.name, l.in)))
					if ran := g.ran(); len(ran) > 0 && !(k.inside && ran[0] == "ws/ran") {
						t.Errorf("%s: %s ran the program: %v\n%s", l.name, command, ran, host.Clip(said.Text(), 300))
					}
				}
			}
			host.Must(t, h.Stop())
		})
	}
}

// A gitWorld is a directory with repositories, and a program that tells that it ran: within the root, and outside.
type gitWorld struct {
	root, ws, program string
	user              int
}

func newGitWorld(t *testing.T) *gitWorld {
	t.Helper()
	root, err := filepath.EvalSymlinks(host.TempDir(t))
	host.Must(t, err)
	g := &gitWorld{root: root, ws: filepath.Join(root, "ws"), program: filepath.Join(root, "ws", "program")}
	host.MustWrite(t, g.program, fmt.Sprintf("#!/bin/sh\ntouch %[1]s/ran %[1]s/ws/ran\nexit 1\n", root))
	host.Must(t, os.Chmod(g.program, 0o755))
	host.Must(t, os.MkdirAll(filepath.Join(root, "home"), 0o755))
	return g
}

func (g *gitWorld) env() []string {
	return append(host.CleanEnv(filepath.Join(g.root, "home")), "P="+g.program, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@e", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@e")
}

func (g *gitWorld) layout(t *testing.T, l gitLayout) {
	t.Helper()
	dir := filepath.Join(g.ws, l.name)
	host.Must(t, os.MkdirAll(dir, 0o755))
	cmd := exec.Command("sh", "-c", gitTools+l.script)
	cmd.Dir, cmd.Env = dir, g.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", l.name, err, out)
	}
}

// works holds that some of the commands make git alone run the program. Where that depends on the user or the version of
// git, it is told.
func (g *gitWorld) works(t *testing.T, l gitLayout) {
	t.Helper()
	g.ran()
	saved := filepath.Join(g.root, "saved")
	dir := filepath.Join(g.ws, l.name)
	host.Must(t, exec.Command("cp", "-a", dir, saved).Run())
	defer func() {
		host.Must(t, os.RemoveAll(dir))
		host.Must(t, os.Rename(saved, dir))
	}()
	for _, command := range gitLooking {
		g.touch(t, l)
		cmd := exec.Command("sh", "-c", fmt.Sprintf(command, filepath.Join(l.name, l.in)))
		cmd.Dir, cmd.Env = g.ws, g.env()
		_ = cmd.Run() // the program fails
		if len(g.ran()) > 0 {
			return
		}
	}
	t.Logf("%s runs nothing with this git", l.name)
}

// touch makes the index of every repository stale, so that git refreshes it.
func (g *gitWorld) touch(t *testing.T, l gitLayout) {
	t.Helper()
	at := time.Now()
	host.Must(t, filepath.WalkDir(filepath.Join(g.ws, l.name), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "objects" {
			return fs.SkipDir
		}
		if err == nil && d.Name() == "c" {
			err = os.Chtimes(path, at, at)
		}
		return err
	}))
}

// ran tells where the program has left its mark, and takes that away.
func (g *gitWorld) ran() (marks []string) {
	for _, name := range []string{"ran", "ws/ran"} {
		if os.Remove(filepath.Join(g.root, name)) == nil {
			marks = append(marks, name)
		}
	}
	return marks
}

func (g *gitWorld) giveTo(t *testing.T) {
	t.Helper()
	if g.user != 0 {
		w := &world{root: g.root, ws: g.ws, home: filepath.Join(g.root, "home"),
			state: filepath.Join(g.root, "home", "state", "toolhost")}
		w.giveTo(t, g.user)
	}
}

func (g *gitWorld) host(t *testing.T, file string, more ...string) *host.Host {
	t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHostAs(ctx, (&world{user: g.user}).as, host.StdioModern, g.ws, append(g.env(), more...),
		"--settings", file)
	host.Must(t, err)
	return h
}

func (g *gitWorld) call(t *testing.T, h *host.Host, command string) *client.Result {
	t.Helper()
	ctx, cancel := host.Patient()
	defer cancel()
	args, err := json.Marshal(map[string]string{"command": command})
	host.Must(t, err)
	said, err := h.Call(ctx, "Bash", string(args))
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, h.Stderr)
	}
	if strings.Contains(said.Text(), "inside the host") {
		t.Errorf("%s: %s", command, said.Text())
	}
	return said
}
