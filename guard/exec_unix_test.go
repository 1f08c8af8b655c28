//go:build unix

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// machine is a directory of programs, which takes the place of those of this machine for a test.
type machine struct {
	t   *testing.T
	dir string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := machine{t, dir}
	for name, content := range map[string]string{
		"bin/rm": "the program rm", "bin/git": "the program git", "bin/python3.12": "the program python", "bin/pgrep": "the program pgrep", "bin/ls": "the program ls",
		"bin/busybox": "many programs", "lib/npm/bin/npm-cli.js": "#!/usr/bin/env node\n", "bin/env": "the program env", "bin/node": "the program node",
		"lib/ld.so": "the loader", "bin/shim-a": "#!/bin/sh\nshim\n", "bin/shim-b": "#!/bin/sh\nshim\n", "bin/sh": "the program sh",
	} {
		m.write(name, content)
	}
	for name, to := range map[string]string{
		"bin/python3": "python3.12", "bin/pkill": "pgrep", "bin/cat": "busybox", "bin/shred": "busybox", "bin/npm": "../lib/npm/bin/npm-cli.js",
	} {
		m.link(name, to)
	}
	was := installed
	installed = &installation{dirs: func() []string { return []string{filepath.Join(dir, "bin")} }}
	t.Cleanup(func() { installed = was })
	installed.namesOf(realpath.ID{})
	return m
}

func (m machine) write(name, content string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, []byte(content), 0o700)); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) link(name, to string) {
	m.t.Helper()
	if err := os.Symlink(to, filepath.Join(m.dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

// file is a file as the kernel would load it.
func (m machine) file(name string) execgate.File {
	m.t.Helper()
	f, err := m.open(name)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { f.Handle.Close() })
	return f
}

func (m machine) open(name string) (execgate.File, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(m.dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return execgate.File{}, err
	}
	f, err := os.Open(real)
	if err != nil {
		return execgate.File{}, err
	}
	info, err := f.Stat()
	id, _ := realpath.Identify(info)
	return execgate.File{Name: real, Handle: f, Dev: id.Device, Inode: id.Inode, Size: info.Size(),
		Ctime: info.ModTime()}, err
}

// attempt is the start of the programs named before a "|", with the arguments after it.
func (m machine) attempt(line string) *execgate.Exec {
	m.t.Helper()
	files, args, _ := strings.Cut(line, " |")
	e := &execgate.Exec{Args: strings.Fields(args), Dir: m.dir, Open: m.open}
	for i, name := range strings.Fields(files) {
		if i == 0 {
			e.Path = filepath.Join(m.dir, name)
		}
		e.Files = append(e.Files, m.file(name))
	}
	return e
}

func TestJudgeExec(t *testing.T) {
	m := newMachine(t)
	m.write("ws/copy", "the program rm")
	m.write("ws/git-copy", "the program git")
	m.write("ws/many", "many programs")
	m.write("ws/changed", "the program Rm")
	m.write("ws/script", "#!"+m.dir+"/bin/rm -r\n")
	m.write("ws/build.js", "")
	m.write("ws/pip/__main__.py", "")
	m.link("ws/link", "../bin/rm")
	m.link("ws/deep", "link")
	m.link("ws/kill", "../bin/pkill")
	m.link("ws/tool.js", "../lib/npm/bin/npm-cli.js")
	if err := os.Link(filepath.Join(m.dir, "bin/rm"), filepath.Join(m.dir, "ws/hard")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule    string
		refused []string
		passes  []string // but is spoken of
		not     []string // is not spoken of
	}{
		{"Bash(rm:*)", []string{
			"bin/rm | rm x", "bin/rm |", "bin/rm | harmless x", "ws/copy | copy x", "ws/copy | ls", "ws/link | link x", "ws/deep | ls x", "ws/hard | hard x",
			"bin/ls | rm x", "bin/busybox | busybox rm x", "ws/many | many rm x", "bin/busybox | rm x",
			"ws/script bin/rm | script x", "lib/ld.so bin/rm | ld.so bin/rm x", "lib/ld.so ws/copy | ld.so --preload x ws/copy y",
		}, nil, []string{"bin/ls | ls rm", "ws/changed | changed x", "bin/busybox | cat rm",
			"bin/node | node --flag build.js rm", "bin/shim-a | rmdir x"}},
		{"Bash(git push:*)", []string{
			"bin/git | git push", "bin/git | git -C dir push origin", "bin/git | git -c a.b=c --no-pager push", "ws/git-copy | g push", "bin/ls | git-push origin",
		}, []string{"bin/git | git pull", "bin/git | git -C push status", "bin/git | git -C push --version",
			"bin/git | git -C push", "bin/git | git commit -m push", "ws/git-copy | g pull"}, []string{"bin/ls | ls git push"}},
		{"Bash(npm publish:*)", []string{
			"bin/npm bin/env | npm publish", "bin/node | node " + m.dir + "/bin/npm publish", "bin/node | node lib/npm/bin/npm-cli.js publish x", "bin/node | node --title x ws/tool.js publish",
			"bin/node | node --harmony ws/tool.js --silent publish",
		}, []string{"bin/npm bin/env | npm install publish", "bin/node | node bin/npm test"},
			[]string{"bin/node | node ws/build.js publish", "bin/node | node -e npm publish"}},
		{"Bash(pip install:*)", []string{"bin/python3 | python3 -m pip install x", "bin/python3.12 | python3.12 -Im pip install x", "bin/python3 | python3 ws/pip install x", "bin/python3 | python3 -W ignore ws/pip/__main__.py install"},
			[]string{"bin/python3 | python3 -m pip list"},
			[]string{"bin/python3 | python3 ws/build.js -m pip install", "bin/python3 | python3 -m http.server"}},
		{"Bash(python3:*)", []string{"bin/python3.12 | python3.12 x", "bin/python3 | python3 x"}, nil, nil},
		{"Bash(pkill:*)", []string{"bin/pkill | pkill x", "bin/pgrep | pkill x"}, nil, []string{"bin/pgrep | pgrep x", "ws/kill | kill x"}},
		{"Bash(shred:*)", []string{"bin/shred | shred x", "bin/busybox | busybox shred x"}, nil, []string{"bin/cat | cat x", "bin/busybox | busybox cat x"}},
		{"Bash(shim-a:*)", []string{"bin/shim-a bin/sh | shim-a x", "bin/sh | sh bin/shim-a x"}, nil, []string{"bin/shim-b bin/sh | shim-b"}},
		{"Bash(* --force)", []string{"bin/ls | ls x --force"}, []string{"bin/ls | ls x"}, nil},
		{"Bash(./ws/build.js:*)", []string{"ws/build.js | build.js"}, nil, []string{"bin/ls | ls ./ws/build.js"}},
	}
	_, ws := workspace(t)
	for _, tt := range tests {
		for kind, action := range map[string]Action{"deny ": Deny, "ask ": Ask} {
			p := policy(t, ws, testRules(ws, kind+tt.rule), contained)
			check := func(lines []string, want Action, confirm bool) {
				for _, line := range lines {
					got := p.Commands().JudgeExec(m.attempt(line))
					if got.Action != want || got.Confirm != confirm || want != Allow && got.Rule != tt.rule {
						t.Errorf("%s%s: %s: %v by %q, confirm: %v; want %v, confirm: %v", kind, tt.rule, line,
							got.Action, got.Rule, got.Confirm, want, confirm)
					}
				}
			}
			check(tt.refused, action, false)
			check(tt.passes, Allow, true)
			check(tt.not, Allow, false)
		}
	}
}

// A file that is many programs starts some of them itself.
func TestJudgeExecOfManyPrograms(t *testing.T) {
	m := newMachine(t)
	m.write("bin/busybox", "\x00find\x00rm\x00sh\x00xargs\x00")
	m.write("ws/sh", "BusyBox v1\x00rm\x00")
	m.write("ws/find", "a find of another kind")
	m.write("bin/lvm", "the program lvm")
	m.link("bin/lvremove", "lvm")
	installed.once = sync.Once{}
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Bash(rm:*)\ndeny Bash(lvremove:*)\nask Bash(git push:*)"), contained)
	for _, tt := range []struct {
		lines []string
		want  Action
	}{
		{[]string{"bin/busybox | busybox find . -exec rm {} ;", "bin/busybox | find . -exec rm {} +", "bin/busybox | xargs rm", "bin/busybox | busybox xargs -n 1 rm -f", "bin/busybox | sh -c rm",
			"bin/busybox | busybox busybox rm", "bin/busybox | busybox env timeout 5 rm x", "ws/sh | sh -c rm", "bin/lvm | lvm lvremove x", "bin/busybox | renamed rm x"}, Deny},
		{[]string{"bin/busybox | busybox sh script", "bin/busybox | ash script", "bin/busybox | sh", "ws/sh | sh script", "bin/busybox | busybox xargs -I{} {} x", "bin/busybox | busybox find . -exec {} x ;",
			"bin/busybox | busybox sh --version"}, Ask},
		{[]string{"bin/busybox | busybox find . -name rm", "bin/busybox | find . -exec ls {} ;", "bin/busybox | xargs ls", "bin/busybox | busybox xargs -I{} cp {} x", "bin/busybox | busybox ls rm",
			"bin/busybox | sh -c ls", "bin/lvm | lvm lvs", "bin/lvm | lvs lvremove", "ws/find | find . -exec ls {} ;", "bin/busybox | busybox"}, Allow},
	} {
		for _, line := range tt.lines {
			if got := p.Commands().JudgeExec(m.attempt(line)); got.Action != tt.want {
				t.Errorf("%s: %v by %q, want %v", line, got.Action, got.Rule, tt.want)
			}
		}
	}
	other := policy(t, ws, testRules(ws, "deny Bash(git push:*)"), contained)
	for _, line := range []string{"bin/busybox | busybox sh script", "ws/sh | sh script", "bin/busybox | xargs git"} {
		if got := other.Commands().JudgeExec(m.attempt(line)); got.Action != Allow {
			t.Errorf("%s has no git of its own: %v by %q", line, got.Action, got.Rule)
		}
	}
}

func TestJudgeExecThatCannotBeRead(t *testing.T) {
	m := newMachine(t)
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "deny Bash(git push:*)\ndeny Bash(rm -rf:*)\nask Bash(npm:*)"), contained)
	cut := func(line string) *execgate.Exec {
		e := m.attempt(line)
		e.Cut = true
		return e
	}
	unreadable := m.attempt("bin/ls | ")
	unreadable.Unreadable = errors.New("its memory cannot be read")
	for name, tt := range map[string]struct {
		e    *execgate.Exec
		want Action
		rule string
	}{
		"options may follow":     {cut("bin/rm | rm a b"), Deny, RuleUnreadable},
		"the rule matches":       {cut("bin/git | git push a b"), Deny, "Bash(git push:*)"},
		"another subcommand":     {cut("bin/git | git add a b"), Allow, ""},
		"no subcommand yet":      {cut("bin/git | git -c a=b"), Deny, RuleUnreadable},
		"ask":                    {cut("bin/npm bin/env | npm i"), Ask, "Bash(npm:*)"},
		"another program":        {cut("bin/ls | ls a b"), Allow, ""},
		"an unreadable process":  {unreadable, Deny, RuleUnreadable},
		"no arguments":           {m.attempt("bin/ls |"), Allow, ""},
		"bytes that are no text": {&execgate.Exec{Path: "/x/\xff", Args: []string{"\xff\xfe", ""}, Dir: "\xff"}, Allow, ""},
		"nothing at all":         {&execgate.Exec{}, Allow, ""},
	} {
		if got := p.Commands().JudgeExec(tt.e); got.Action != tt.want || got.Rule != tt.rule {
			t.Errorf("%s: %v by %q, want %v by %q", name, got.Action, got.Rule, tt.want, tt.rule)
		}
	}
	if (ExecFinding{}).Action != Deny {
		t.Error("the zero finding does not refuse")
	}
	if got := p.Refusing(errors.New("broken")).Commands().JudgeExec(m.attempt("bin/ls | ls")); got.Action != Deny ||
		got.Rule != RuleSettings {
		t.Errorf("rules that cannot be read: %+v", got)
	}
}

func TestExecGrants(t *testing.T) {
	_, ws := workspace(t)
	p := policy(t, ws, testRules(ws, "ask Bash(git push:*)"), contained)
	for _, tt := range []struct {
		text, args string
		want       bool
	}{
		{"git push origin main", "git push origin main", true},
		{"cd x && /usr/bin/git push origin", "git push origin", true},
		{"git push origin main", "git push origin other", false},
		{"git push origin main", "git push origin main --force", false},
		{"git push origin $(branch) -v", "git push origin a b -v", true},
		{"git push origin $(branch)", "git push other x", false},
		{"git push $A $B", "git push", true},
		{"git pull", "git push", false},
	} {
		args := strings.Fields(tt.args)
		finding := ExecFinding{Action: Ask, Rule: "Bash(git push:*)", Words: args}
		covers := slices.ContainsFunc(p.Commands().ExecGrants(Exec{Text: tt.text}),
			func(g ExecGrant) bool { return g.Covers(finding, args) })
		if covers != tt.want {
			t.Errorf("%q covers %q: %v, want %v", tt.text, tt.args, covers, tt.want)
		}
	}
}

func BenchmarkJudgeExec(b *testing.B) {
	_, ws := workspace(b)
	p := policy(b, ws, testRules(ws, "deny Bash(rm:*)\ndeny Bash(curl:*)\ndeny Bash(git push:*)"), contained)
	for _, line := range []string{"/bin/true", "/bin/ls -l x", "/usr/bin/git status"} {
		args := strings.Fields(line)
		real, err := filepath.EvalSymlinks(args[0])
		if err != nil {
			b.Skip(err)
		}
		f, err := os.Open(real)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		info, _ := f.Stat()
		id, _ := realpath.Identify(info)
		e := &execgate.Exec{Path: args[0], Args: args, Dir: "/",
			Files: []execgate.File{{Name: real, Handle: f, Dev: id.Device, Inode: id.Inode, Size: info.Size(),
				Ctime: info.ModTime()}}}
		b.Run(filepath.Base(args[0]), func(b *testing.B) {
			for b.Loop() {
				p.Commands().JudgeExec(e)
			}
		})
	}
}

// What the kernel keeps from starting is what a rule denies in whole, and that is one program.
func TestDeniedPrograms(t *testing.T) {
	m := newMachine(t)
	_, ws := workspace(t)
	for rule, want := range map[string]string{
		"Bash(rm:*)": "bin/rm", "Bash(rm *)": "bin/rm", "Bash(rm)": "", "Bash(rm -r:*)": "", "Bash(git push:*)": "", "Bash(/bin/rm:*)": "bin/rm", "Bash(nosuch:*)": "",
		"Bash(cat:*)": "", "Bash(busybox:*)": "", "Bash(pkill:*)": "", "Bash(python3:*)": "", "Bash(npm:*)": "", "Bash(sh:*)": "",
	} {
		got := strings.Join(policy(t, ws, testRules(ws, "deny "+rule), contained).Commands().DeniedPrograms(), " ")
		if want != "" {
			want = filepath.Join(m.dir, want)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}
