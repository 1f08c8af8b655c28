package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// settledNames are protected names, of each kind.
var settledNames = []string{".mcp.json", ".vscode/settings.json", ".claude/settings.json", ".husky/pre-commit",
	"mise.toml", ".envrc", "pkg/.claude/settings.json", "kilo.json", ".devin/mcp_config.json", ".toolhost/toolhost.json"}

// TestSettleCheckout switches a branch that changes protected files, over several calls: git sees and commits what it would
// without a host, and outside the former files stand until a person keeps the new ones.
func TestSettleCheckout(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	all := strings.Join(settledNames, " ")
	write := func(text string) string {
		return fmt.Sprintf("for f in %s; do mkdir -p $(dirname $f); echo '%s' > $f; done; git add -A; git commit -q -m x", all, text)
	}
	g.must(t, g.ws, "git config user.name t; git config user.email t@example.org; git checkout -q -b old; "+write("{}")+
		"; git checkout -q -b new; "+write(`{"a":1}`)+"; echo y > f; git commit -q -a -m f; git checkout -q old")
	s := g.start(t)
	r := s.MustCall("Bash", host.Args{"command": "git checkout -q new && git status --porcelain && cat " + all})
	if text := r; strings.Count(text, `{"a":1}`) != len(settledNames) || strings.Contains(text, " M ") ||
		!strings.Contains(text, "held until a person answers") {
		t.Errorf("the command sees %s", text)
	}
	outside := func(want string) {
		t.Helper()
		for _, name := range settledNames {
			if text, err := os.ReadFile(filepath.Join(g.ws, name)); err != nil ||
				strings.TrimSpace(string(text)) != want {
				t.Errorf("%s is %q outside, %v", name, text, err)
			}
		}
		if text, err := os.ReadFile(filepath.Join(g.ws, "f")); err != nil || string(text) != "y\n" {
			t.Errorf("f is %q, %v", text, err)
		}
	}
	outside("{}")
	r = s.MustCall("Bash", host.Args{"command": "echo z >> pkg/z; git add -A && git commit -q -m z && git status --porcelain && git show --stat --format= HEAD"})
	if !strings.Contains(r, "1 file changed") {
		t.Errorf("the commit has %s", r)
	}
	outside("{}")
	for _, name := range settledNames {
		if text := s.MustCall("Read", host.Args{"file_path": filepath.Join(g.ws, name)}); !strings.Contains(text,
			`{"a":1}`) {
			t.Errorf("Read of %s: %s", name, text)
		}
	}
	if text := s.MustCall("Grep", host.Args{"pattern": `"a":1`, "output_mode": "files_with_matches"}); !strings.Contains(text, "kilo.json") {
		t.Errorf("Grep finds %s", text)
	}
	outside("{}")
	s.Kill()
	s = g.start(t)
	r = s.MustCall("Bash", host.Args{"command": "git status --porcelain; cat " + all})
	if text := r; strings.Count(text, `{"a":1}`) != len(settledNames) || strings.Contains(text, " M ") {
		t.Errorf("after a restart the command sees %s", text)
	}
	outside("{}")
	for _, command := range []string{"status", "rules"} {
		cmd := exec.Command(host.Binary, command)
		cmd.Dir, cmd.Env = g.ws, host.CleanEnv(g.home)
		if out, err := cmd.CombinedOutput(); err != nil ||
			!strings.Contains(string(out), fmt.Sprint(len(settledNames), " changes of protected files are held")) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	cmd := exec.Command(host.Binary, "keep", "--yes")
	cmd.Dir, cmd.Env = g.ws, host.CleanEnv(g.home)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "kilo.json") ||
		!strings.Contains(string(out), `  + {"a":1}`) {
		t.Errorf("keep: %v\n%s", err, out)
	}
	outside(`{"a":1}`)
	if text := g.must(t, g.ws, "git status --porcelain"); text != "" {
		t.Errorf("git outside: %s", text)
	}
	s.End()
}

// TestSettlePlanted has programs of many kinds plant protected names: nothing stands outside when the command has ended.
func TestSettlePlanted(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	g := newLeftoverGround(t, 0)
	s := g.start(t)
	for program, line := range map[string]string{
		"bash": `bash -c 'f=$1; mkdir -p "$(dirname "$f")"; echo pwned > "$f"' x %s`,
		"python3": `python3 -c 'import os,sys; f=sys.argv[1]; d=os.path.dirname(f)
if d: os.makedirs(d, exist_ok=True)
open(f,"w").write("pwned")' %s`,
		"perl": `perl -MFile::Path -MFile::Basename -e '$f=shift; File::Path::make_path(dirname($f)); open F,">",$f; print F "pwned"' %s`,
		"awk":  `awk 'BEGIN{f=ARGV[1]; system("mkdir -p $(dirname " f ")"); print "pwned" > f}' %s`,
		"node": `node -e 'const fs=require("fs"),p=require("path"),f=process.argv[1]; fs.mkdirSync(p.dirname(f),{recursive:true}); fs.writeFileSync(f,"pwned")' %s`,
	} {
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		for _, name := range samples.Few(settledNames) {
			text := fmt.Sprintf(line, `$(printf '%s' `+name[:1]+`)`+name[1:])
			r, err := s.Host.Call(s.Ctx, "Bash", fmt.Sprintf(`{"command":%q}`, text))
			host.Must(t, err)
			if _, err := os.Lstat(filepath.Join(g.ws, name)); err == nil {
				t.Errorf("%s: %s stands outside: %s", program, name, r.Text())
			}
			if strings.Contains(r.Text(), "a person must approve it") {
				continue // its text was read
			}
			if now, err := s.Host.Call(s.Ctx, "Bash", fmt.Sprintf(`{"command":%q}`, "cat "+name)); err != nil ||
				!strings.Contains(now.Text(), "pwned") {
				t.Errorf("%s: the next command does not see %s: %s\n%s", program, name, now.Text(), r.Text())
			}
		}
	}
	s.End()
}

// settleForgeries are scripts that put content at protected names and make it look as if it had been there before.
var settleForgeries = []string{
	`id=$(echo pwned | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$id,.mcp.json; git checkout -- .mcp.json`,
	`echo pwned > .mcp.json; git add -f .mcp.json; git commit -q -m x; git update-ref refs/remotes/origin/main HEAD; git reset -q --hard HEAD`,
	`id=$(echo pwned | git hash-object -w --stdin); git replace -f $(git rev-parse HEAD:.mcp.json) $id; rm .mcp.json; git checkout -- .mcp.json; git replace -d $(git rev-parse HEAD:.mcp.json)`,
	`echo pwned > .mcp.json; git update-index --assume-unchanged .mcp.json; git stash -q; true`,
	`echo pwned > .mcp.json; git update-index --skip-worktree .mcp.json`,
	`git config core.checkStat minimal; git config core.trustctime false; touch -r .mcp.json ref; echo pw > .mcp.json; touch -r ref .mcp.json; rm ref`,
	`echo '.mcp.json working-tree-encoding=UTF-16' > .gitattributes; rm .mcp.json; git checkout -- .mcp.json; rm .gitattributes`,
	`git clone -q . ../ws/other; (cd other; git checkout -q -b evil; echo pwned > .mcp.json; git commit -q -a -m x); git fetch -q other evil; git checkout -q FETCH_HEAD`,
	`mkdir d; echo pwned > d/tasks.json; rm -rf .vscode; mv d .vscode`,
	`mkdir -p new/.claude; echo pwned > new/.claude/settings.json; mv pkg old; mv new pkg`,
	`mkdir -p d; echo pwned > d/tasks.json; rm -rf .vscode; ln -s d .vscode`,
	`echo pwned > x.json; ln -f x.json .mcp.json`,
	`ln .mcp.json hard; echo pwned > hard`,
	`mkdir .VSCode; echo pwned > .VSCode/tasks.json`,
	`mkdir -p u/v; echo pwned > u/v/.envrc; chmod 000 u`,
	`mkdir -p r; echo pwned > r/.envrc; chmod 555 r`,
	`echo pwned > .envrc; chmod 000 .envrc`,
	`mkfifo .envrc`,
	`mkdir .envrc; echo pwned > .envrc/x`,
	`truncate -s 1G .envrc`,
	`mkdir -p .idea; echo pwned > .idea/$'\xff\n'`,
	`(setsid sh -c 'sleep 0.2; echo pwned > .envrc' &); true`,
	`git worktree add -q -b w side HEAD; echo pwned > side/.envrc`,
	`git init -q --bare b.git; mkdir -p sub; cd sub; git init -q; echo pwned > .envrc; git add -f .envrc; git commit -q -m x; cd ..; git -c protocol.file.allow=always submodule add -q ./sub m`,
	`git checkout -q --orphan empty; git rm -q -r -f .; git commit -q --allow-empty -m x`,
	`rm -rf .git .mcp.json; git init -q; echo pwned > .mcp.json; git add -A; git commit -q -m x`,
}

// TestSettleForged runs forgeries, each in a workspace of its own. Nothing of them stands outside of commands, neither then nor after
// further commands and a restart.
func TestSettleForged(t *testing.T) {
	t.Parallel()
	host.NeedsContained(t)
	const look = `find . -name .git -prune -o \( -not -type d \) -print | grep -a -i -E '(^|/)(\.mcp\.json|\.envrc|\.vscode|\.idea|\.claude/settings)' | LC_ALL=C sort | while IFS= read -r f; do printf '%s ' "$f"; stat -c '%F %a' "$f"; [ ! -f "$f" ] || head -c 1000 "$f"; done`
	for i, script := range samples.Few(settleForgeries) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			g := newLeftoverGround(t, 0)
			g.must(t, g.ws, "git config user.name t; git config user.email t@example.org; mkdir -p .vscode pkg/.claude; echo '{}' | tee .mcp.json .vscode/tasks.json > pkg/.claude/settings.json; git add -A; git commit -q -m settings")
			before := g.must(t, g.ws, look)
			s := g.start(t)
			r, err := s.Host.Call(s.Ctx, "Bash", fmt.Sprintf(`{"command":%q}`, "eval \"$(printf %s "+"'"+strings.ReplaceAll(script, "'", `'\''`)+"')\""))
			host.Must(t, err)
			for _, after := range []func(){
				func() {},
				func() { s.MustCall("Bash", host.Args{"command": "true"}) },
				func() { s.Kill(); s = g.start(t); s.MustCall("Bash", host.Args{"command": "true"}) },
			} {
				after()
				if now := g.must(t, g.ws, look); now != before {
					t.Errorf("%s\n%s\noutside stands\n%s\nbefore\n%s", script, host.Clip(r.Text(), 400), now, before)
				}
			}
			s.End()
		})
	}
}

// TestSettleStrict has commands take away what a settings file of the workspace denies, with each kind of sandbox: it stays denied in
// the calls after it, and after an end or kill of the host.
func TestSettleStrict(t *testing.T) {
	t.Parallel()
	commands := []string{
		"rm -r .claude", "echo '{}' > .claude/settings.json", "git checkout -q without", "mv .claude c; mkdir .claude", "git stash -q -u; rm -rf .claude",
		"rm -r .claude; ln -s c .claude; mkdir c", "git rm -q -r .claude; git commit -q -m x",
	}
	for i, c := range samples.Of([]struct{ name, settings string }{
		{"namespaces", `{}`},
		{"landlock", `{}`},
		{"bypass", `{"permissions":{"defaultMode":"bypassPermissions"}}`},
		{"off", `{"sandbox":{"enabled":false,"onUnavailable":"allow"}}`},
	}, 1) {
		for _, command := range samples.Few(slices.Concat(commands[i:], commands[:i])) { // each kind begins with another one
			t.Run(c.name+" "+command, func(t *testing.T) {
				t.Parallel()
				if c.name != "off" && !host.Contained(t) {
					t.Skip("nothing contains commands on this machine")
				}
				g := newLeftoverGround(t, 0)
				host.MustWrite(t, g.settings, strings.Replace(c.settings, "{", `{"permissions":{"defaultMode":"acceptEdits","allow":["Bash"]},`, 1))
				if strings.Contains(c.settings, "permissions") {
					host.MustWrite(t, g.settings, c.settings)
				}
				if c.name == "landlock" {
					g.as = host.WithoutNamespaces(t)
				}
				g.must(t, g.ws, `git config user.name t; git config user.email t@example.org; mkdir .claude; git branch without; echo '{"permissions":{"deny":["Bash(touch:*)"]}}' > .claude/settings.json; git add -A; git commit -q -m deny`)
				s := g.start(t)
				denied := func(when string) {
					t.Helper()
					r, err := s.Host.Call(s.Ctx, "Bash", `{"command":"touch x"}`)
					if host.Must(t, err); !r.IsError || !strings.Contains(r.Text(), "denied") {
						t.Errorf("%s: %s", when, r.Text())
					}
				}
				denied("before")
				r, err := s.Host.Call(s.Ctx, "Bash",
					fmt.Sprintf(`{"command":%q}`, `eval "$(printf '`+strings.ReplaceAll(command, "'", `\047`)+`')"`))
				if host.Must(t, err); r.IsError {
					t.Fatal(r.Text())
				}
				denied("after the command: " + r.Text())
				s.End()
				s = g.start(t)
				denied("after an end")
				s.MustCall("Bash", host.Args{"command": "until ls; do :; done"})
				denied("after another command")
				s.Kill()
				s = g.start(t)
				denied("after a kill")
				g.wantFiles(t, "in the end", map[string]string{"x": ""})
				s.End()
			})
		}
	}
}

// wantFiles compares files of the workspace; "" stands for one that does not exist.
func (g *leftoverGround) wantFiles(t *testing.T, when string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(g.ws, name))
		if string(got) != text || os.IsNotExist(err) != (text == "") {
			t.Errorf("%s: %s is %q, %v; want %q", when, name, got, err, text)
		}
	}
}
