package ignore

import (
	"runtime"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		lines, path string
		dir         bool
		want        Verdict
	}{
		{"*.log", "a/b.log", false, Ignored},
		{"*.log\n!keep.log", "keep.log", false, Kept},
		{"!keep.log\n*.log", "keep.log", false, Ignored},
		{"build/", "build", false, None},
		{"build/", "x/build", true, Ignored},
		{"/build", "x/build", true, None},
		{"a/b", "x/a/b", false, None},
		{"a/**", "a", true, None},
		{"a/**", "a/b", false, Ignored},
		{"# a\n\\#b", "#b", false, Ignored},
		{"\\!c", "!c", false, Ignored},
		{"d  \r\n", "d", false, Ignored},
		{"e\\ ", "e ", false, Ignored},
		{"\xef\xbb\xbff", "f", false, Ignored},
		{"[x\nq}", "[x", false, Ignored},
		{"q}", "q}", false, None}, // not a valid pattern: dropped
		{"{a,b}.c", "b.c", false, Ignored},
		{"", "a", false, None},
	} {
		if got := Parse([]byte(tt.lines), nil).Match(tt.path, tt.dir); got != tt.want {
			t.Errorf("%q on %q: got %d, want %d", tt.lines, tt.path, got, tt.want)
		}
	}
}

func TestParseBounds(t *testing.T) {
	rules := Parse([]byte(strings.Repeat("a\n", MaxFile/2)+"b\n"), nil)
	if rules.Match("a", false) != Ignored || rules.Match("b", false) != None {
		t.Error("the bound of a file's size does not hold")
	}
}

// TestRoom bounds what rules take in memory: a short line can stand for many long patterns.
func TestRoom(t *testing.T) {
	const bytes = 1 << 20
	for name, line := range map[string]string{
		"short rules": "a\n", "alternatives": strings.Repeat("{a,b}", 10) + "?c*d\n", "long ones": strings.Repeat("{a,b}", 4) + strings.Repeat("?x", 3000) + "\n",
		"classes": strings.Repeat("[!a]", 2000) + "\n",
	} {
		room := NewBudget(bytes)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		rules := Parse([]byte(strings.Repeat(line, MaxFile/len(line))), room)
		runtime.GC()
		runtime.ReadMemStats(&after)
		took := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		if took > 2*bytes || rules.Size() > bytes || !room.Short() {
			t.Errorf("%s: %d bytes were taken, %d are said to be, and short is %v", name, took, rules.Size(),
				room.Short())
		}
		room.Give(rules.Size())
		if small := Parse([]byte("b\n"), room); small.Match("b", false) != Ignored {
			t.Errorf("%s: there is no room after it was given back", name)
		}
		runtime.KeepAlive(rules)
	}
}

func TestChain(t *testing.T) {
	parse := func(s string) *Rules { return Parse([]byte(s), nil) }
	global := &DirRules{Git: parse("*.bak"), Above: "sub/"}
	top := &DirRules{Above: "sub/", Repo: true, Git: parse("/sub/x\n*.tmp"), Dot: parse("!y.tmp")}
	inner := &DirRules{Depth: len("in/"), Repo: true}
	for _, tt := range []struct {
		name  string
		chain *Chain
		path  string
		want  Verdict
	}{
		{"above, anchored", NewChain(global).Push(top), "x", Ignored},
		{"above, by name", NewChain(global).Push(top), "a.tmp", Ignored},
		{".ignore before .gitignore", NewChain(global).Push(top), "y.tmp", Kept},
		{"global", NewChain(global).Push(top), "a.bak", Ignored},
		{"global, outside of a repository", NewChain(global), "a.bak", None},
		{"the repository within ends the one around", NewChain(global).Push(top).Push(inner), "in/a.tmp", None},
		{".ignore goes on", NewChain(global).Push(top).Push(inner), "in/y.tmp", Kept},
		{"no repository, no .gitignore", NewChain(&DirRules{}).Push(&DirRules{Git: parse("*")}), "a", None},
	} {
		if got := tt.chain.Match(tt.path, false); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestOverrides(t *testing.T) {
	o, err := NewOverrides([]string{"*.go", "!*_test.go", "vendor/x/**"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		dir  bool
		want Verdict
	}{
		{"a.go", false, Kept}, {"a_test.go", false, Ignored}, {"a.py", false, Ignored}, {"sub", true, None}, {"vendor/x/y", false, Kept},
	} {
		if got := o.Match(tt.dir, tt.path); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.path, got, tt.want)
		}
	}
	if !o.MayContain("vendor") || !o.MayContain("vendor/x") || o.MayContain("ven") || o.MayContain("other") {
		t.Error("Leads is wrong")
	}
	if _, err := NewOverrides([]string{"{a"}); err == nil || !strings.Contains(err.Error(), `"{a"`) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("!/a/**/b\\ \n*.{c,d}/\n"), "a/x/b")
	f.Fuzz(func(t *testing.T, content []byte, path string) {
		if len(content) < 10_000 && len(path) < 500 {
			Parse(content, nil).Match(path, true)
		}
	})
}
