package mcpserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// A mover calls tools in conversations of a host on a repository.
type mover struct {
	*planner
	repo string
	cfg  Config
}

func openMover(t *testing.T, files map[string]string, change ...func(*Config)) *mover {
	t.Helper()
	testenv.NotShort(t, "makes worktrees")
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	m := &mover{planner: &planner{T: t, o: &owner{}}}
	all := map[string]string{"a.txt": "one\n", "sub/b.txt": "two\n", ".gitignore": "*.log\n"}
	for name, text := range files {
		all[name] = text
	}
	m.repo = t.TempDir()
	for name, text := range all {
		writeFile(t, filepath.Join(m.repo, name), text)
	}
	git(t, m.repo, "git init -q -b main; git add .; git commit -qm first")
	m.cfg = Config{Roots: []string{m.repo}, StateDir: filepath.Join(t.TempDir(), "state"), Asker: m.o, TrustWorkspace: true,
		With: []string{"EnterWorktree", "ExitWorktree"}}
	for _, f := range change {
		f(&m.cfg)
	}
	m.open()
	t.Cleanup(func() { m.h.Close() })
	return m
}

func (m *mover) open() {
	m.Helper()
	var err error
	if m.h, err = Open(m.cfg); err != nil {
		m.Fatal(err)
	}
}

// git runs a script without the configuration of the person who runs the test.
func git(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=t",
		"GIT_AUTHOR_EMAIL=t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// must calls a tool that is to succeed.
func (m *mover) must(thread, tool, args string) string {
	m.Helper()
	text, isError := m.call(thread, tool, args)
	if isError {
		m.Fatalf("%s %s: %s", tool, args, text)
	}
	return text
}

// refused calls a tool that is to fail with a text.
func (m *mover) refused(thread, tool, args, want string) {
	m.Helper()
	if text, isError := m.call(thread, tool, args); !isError || !strings.Contains(text, want) {
		m.Errorf("%s %s: error %v, expected %q in:\n%s", tool, args, isError, want, text)
	}
}

// tree is the worktree of a conversation.
func (m *mover) tree(thread string) string {
	m.Helper()
	a := m.h.Admit(Local(), map[string]any{"threadId": thread}, "", true)
	defer a.Leave()
	w := a.scope.Dir.Worktree()
	if w == nil {
		m.Fatal("the conversation is in no worktree")
	}
	return w.Tree()
}

func TestWorktreeOfConversation(t *testing.T) {
	t.Parallel()
	m := openMover(t, nil)
	git(t, m.repo, "echo more >> sub/b.txt")
	m.must("one", "Read", `{"file_path":"a.txt"}`)
	text := m.must("one", "EnterWorktree", `{"name":"fix/it"}`)
	tree := m.tree("one")
	for _, want := range []string{tree, "toolhost/fix/it", m.repo} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
	m.must("one", "Edit", `{"file_path":"a.txt","old_string":"one","new_string":"ONE"}`) // it was read, and is the same
	m.must("two", "Write", `{"file_path":"two.txt","content":"2"}`)
	if got := git(t, tree, "cat a.txt; git status --porcelain"); got != "ONE\n M a.txt" {
		t.Errorf("the worktree: %s", got)
	}
	if got := git(t, m.repo, "cat a.txt sub/b.txt two.txt; git status --porcelain; git branch --show-current"); got != "one\ntwo\nmore\n2 M sub/b.txt\n?? two.txt\nmain" {
		t.Errorf("the checkout: %s", got)
	}
	m.refused("one", "EnterWorktree", `{}`, "already")
	m.refused("one", "Write", `{"file_path":"`+filepath.ToSlash(m.repo)+`/x.txt","content":"x"}`, "can only be read")
	if text := m.must("one", "Read", `{"file_path":"`+filepath.ToSlash(m.repo)+
		`/sub/b.txt"}`); !strings.Contains(text, "more") {
		t.Errorf("the checkout cannot be read: %s", text)
	}
	if text := m.must("one", "Glob", `{"pattern":"*.txt"}`); strings.Contains(text, "two.txt") {
		t.Errorf("Glob looks into the checkout: %s", text)
	}
	text = m.must("one", "ExitWorktree", `{}`)
	for _, want := range []string{"git merge toolhost/fix/it", "...toolhost/fix/it", m.repo} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
	if got := git(t, m.repo, "git log --format=%s toolhost/fix/it; git show toolhost/fix/it:a.txt; cat a.txt"); got != "toolhost: unfinished\nfirst\nONE\none" {
		t.Errorf("the branch: %s", got)
	}
	m.refused("one", "ExitWorktree", `{}`, "no worktree")
	m.must("one", "Write", `{"file_path":"here.txt","content":"h"}`)
	if _, err := os.Stat(filepath.Join(m.repo, "here.txt")); err != nil {
		t.Error(err)
	}
	if text := m.must("one", "EnterWorktree", `{"name":"fix/it"}`); !strings.Contains(text, "again") {
		t.Errorf("it was kept: %s", text)
	}
	m.must("one", "ExitWorktree", `{}`)
	m.refused("two", "EnterWorktree", `{"name":"fix/it","base":"HEAD"}`, "exists already")
}

func TestWorktreeInput(t *testing.T) {
	t.Parallel()
	m := openMover(t, nil)
	for args, want := range map[string]string{
		`{"name":"../x"}`: "name:", `{"name":"a..b"}`: "name:", `{"name":"a.lock"}`: "name:", `{"name":"-x"}`: "name:", `{"name":"a//b"}`: "name:", `{"name":"` + strings.Repeat("x", 65) + `"}`: "name:",
		`{"base":"nowhere"}`: "base:", `{"base":"--all"}`: "base:", `{"nam":"x"}`: "nam",
	} {
		m.refused("one", "EnterWorktree", args, want)
	}
	m.refused("", "EnterWorktree", `{}`, "several agents may share")
	m.refused("one", "ExitWorktree", `{}`, "no worktree")
	git(t, m.repo, "mkdir empty; cd empty; git init -q")
	plain := openMover(t, map[string]string{".claude/settings.json": `{"permissions":{"defaultMode":"plan"}}`})
	plain.refused("one", "EnterWorktree", `{}`, "Plan mode")
	git(t, m.repo, "rm -rf .git")
	m.refused("one", "EnterWorktree", `{}`, "not a git repository")
	if left, _ := filepath.Glob(filepath.Join(m.cfg.StateDir, "worktrees", "*-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestWorktreeCommands runs commands in the worktree, which cannot write the checkout or its repository.
func TestWorktreeCommands(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	m := openMover(t, map[string]string{".claude/settings.json": `{"permissions":{"deny":["Read(*.key)"]}}`,
		"sub/x.key": "k3y\n"})
	if held := m.h.policies.of(LocalPrincipal).Commands().Containment(); !held.Denies {
		t.Skip("commands are not contained on this machine: " + held.Why)
	}
	m.must("one", "EnterWorktree", `{"name":"c"}`)
	tree := m.tree("one")
	repo := m.repo
	if real, err := filepath.EvalSymlinks(repo); err == nil {
		repo = real
	}
	before := git(t, repo, "find . -type f ! -path './.git/objects/*' | sort | xargs sha256sum")
	run := func(thread, command string) (string, bool) {
		raw, _ := json.Marshal(map[string]string{"command": command})
		return m.call(thread, "Bash", string(raw))
	}
	if text, isError := run("one", "pwd; git config user.email t@t; git config user.name t; echo 1 >> a.txt; git commit -qam mine; cat "+repo+"/a.txt; cat "+repo+"/sub/b.txt"); isError || !strings.Contains(text, tree) || !strings.Contains(text, "two") {
		t.Fatalf("work in the worktree: %s", text)
	}
	for _, command := range []string{
		"echo x >> " + repo + "/a.txt", "echo x > " + repo + "/new", "cd " + repo + " && touch new", "git -C " + repo + " commit --allow-empty -m x",
		"git --git-dir=" + repo + "/.git update-ref refs/heads/main HEAD", "git --git-dir=" + repo + "/.git --work-tree=" + repo + " checkout -f HEAD~0",
		"git --git-dir=" + repo + "/.git branch evil", "python3 -c \"open('" + repo + "/a.txt','a').write('x')\"", "rm -rf " + repo, "mv " + repo + " " + repo + ".x",
		"git worktree move . " + repo + "/w", "git worktree add " + repo + "/w", "ln -sfn " + repo + " l && echo x >> l/a.txt",
	} {
		if text, isError := run("one", command); !isError &&
			git(t, repo, "find . -type f ! -path './.git/objects/*' | sort | xargs sha256sum") != before {
			t.Errorf("%s: %s", command, text)
		}
	}
	if text, _ := run("one", "cat "+repo+"/sub/x.key sub/x.key; grep -r k3y "+repo+" . ; python3 -c \"print(open('"+
		repo+"/sub/x.key').read())\""); strings.Contains(text, "k3y") {
		t.Errorf("a denied file was read: %s", text)
	}
	if after := git(t, repo, "find . -type f ! -path './.git/objects/*' | sort | xargs sha256sum"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	m.must("one", "Bash", `{"command":"sleep 60","run_in_background":true}`)
	m.refused("one", "ExitWorktree", `{}`, "TaskStop")
	for _, task := range m.h.runtime.Tasks() {
		m.must("one", "TaskStop", `{"task_id":"`+task.ID+`"}`)
	}
	m.must("one", "ExitWorktree", `{}`)
	if text, isError := run("one", "pwd; echo x > made"); isError || !strings.Contains(text, repo) {
		t.Errorf("after the worktree: %s", text)
	}
	if got := git(t, repo, "git log --format=%s toolhost/c; cat made"); got != "toolhost: unfinished\nmine\nfirst\nx" { // of a link that a command made
		t.Errorf("the branch: %s", got)
	}
}
