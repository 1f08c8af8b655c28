package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAnalyze holds every form that the rules for Bash name, and every threat
// class of a shell, to what it must come out as. want lists texts, separated by
// " | ", that a deny rule must see; an undecidable row must also be hiding.
func TestAnalyze(t *testing.T) {
	for _, rows := range [][]row{separatorRows, wrapperRows, wordRows, undecidableRows, programRows, variableRows,
		quotedRows} {
		for _, tt := range rows {
			tt.check(t)
		}
	}
}

// A row is one text and where its demand comes from.
type row struct {
	source, text string
	want         string
	undecidable  bool
}

func (tt row) check(t *testing.T) {
	t.Helper()
	a := Analyze(tt.text)
	name := tt.text[:min(len(tt.text), 60)]
	if got := len(a.Undecidable) > 0; got != tt.undecidable || a.Hiding != got {
		t.Errorf("%s: %q: undecidable %q, hiding %v; want undecidable %v", tt.source, name, a.Undecidable, a.Hiding,
			tt.undecidable)
	}
	var found []string
	for _, c := range a.Commands {
		found = append(found, c.Forms()...)
	}
	for want := range strings.SplitSeq(tt.want, " | ") {
		if want != "" && !slices.Contains(found, want) {
			t.Errorf("%s: %q: %q is not among %q", tt.source, name, want, found)
		}
	}
}

var separatorRows = []row{
	{"rules: separators", "ls && rm x", "ls | rm x", false},
	{"rules: separators", "ls || rm x", "ls | rm x", false},
	{"rules: separators", "ls; rm x", "ls | rm x", false},
	{"rules: separators", "ls | rm x", "ls | rm x", false},
	{"rules: separators", "ls |& rm x", "ls | rm x", false},
	{"rules: separators", "ls & rm x", "ls | rm x", false},
	{"rules: newline", "ls\nrm x", "ls | rm x", false},
	{"neighbour: permission by prefix", "ls\nrm -rf x", "rm -rf x", false},
	{"threat: line continuation", "ls; r\\\nm x", "ls | rm x", false},
	{"threat: line continuation in a comment", "ls # \\\nrm x", "", true},
	{"threat: line continuation in a comment", "ls;#\\\\\\\nrm x", "", true},
	{"threat: line continuation after a dollar sign", "echo \"$\\\n(rm x)\"", "", true},
	{"threat: line continuation after a dollar sign", "cat <<E\n$\\\n(rm x)\nE", "", true},
	{"threat: a closed descriptor and a word", ">&-rm x", "", true},
	{"threat: a closed descriptor and a word", "ls >& -rm x", "", true},
	{"threat: a closed descriptor and a word", "ls >&-- -x", "", true},
	{"threat: a file name that is expanded twice", "ls >&'$(rm x)'", "", true},
	{"threat: a file name that is expanded twice", "ls 1>& \"$x\"", "", true},
	{"threat: a file name that is expanded twice", "ls >&'~/x'", "", true},
	{"rules: redirects", "ls >&- 2>& - 3<&- 4>&2 >&out", "ls", false},
	{"threat: carriage return", "ls a \\\r\nrm x", "", true},
	{"rules: $()", "echo $(rm x)", "rm x", false},
	{"rules: backticks", "echo `rm x`", "rm x", false},
	{"rules: nested substitution", "echo \"a $(echo $(rm x)) b\"", "rm x", false},
	{"rules: <()", "cat <(rm x)", "rm x", false},
	{"rules: >()", "ls > >(rm x)", "rm x", false},
	{"rules: subshell", "(cd a; (rm x))", "cd a | rm x", false},
	{"threat: grouping", "{ ls; rm x; }", "rm x", false},
	{"rules: control flow", "if ls; then rm x; else rm y; fi", "rm x | rm y", false},
	{"rules: control flow", "while rm x; do rm y; done", "rm x | rm y", false},
	{"rules: control flow", "for i in $(rm x); do rm $i; done", "rm x | rm $i", false},
	{"rules: control flow", "case $(rm x) in a) rm y;; esac", "rm x | rm y", false},
	{"rules: control flow", "[[ -n $(rm x) ]] && (( $(rm y) ))", "rm x | rm y", true},
	{"rules: functions", "f() { rm x; }; f", "rm x | f", false},
	{"threat: poisoned functions", "ls() { rm x; }; ls", "rm x | ls", true},
	{"rules: heredoc", "cat <<EOF\n$(rm x)\nEOF", "cat | rm x", false},
	{"rules: heredoc to a shell", "bash <<'EOF'\nrm x\nEOF", "bash | rm x", false},
	{"rules: heredoc to a shell", "sudo bash <<'EOF'\nrm x\nEOF", "sudo bash | bash | rm x", false},
	{"rules: heredoc to a shell", "bash <<EOF\nrm $x\nEOF", "bash", true},
	{"rules: here-string to a shell", "bash <<< 'rm x'", "rm x", false},
	{"rules: bash -c", "bash -c 'rm x'", "rm x", false},
	{"rules: bash -c", "/bin/bash -lc 'rm x'", "rm x", false},
	{"rules: bash -c", "bash -o pipefail -ec 'rm x'", "rm x", false},
	{"rules: bash -c", "bash -c 'bash -c \"rm x\"'", "rm x", false},
	{"threat: options of bash", "bash -norc -c 'rm x'", "", true},
	{"threat: options of bash", "bash -c + 'rm x'", "", true},
	{"threat: options of bash", "bash -n +n\"$x\" -c 'rm x'", "", true},
	{"rules: here-string to a shell", "bash <<< 'rm x\\'", "rm x", false},
	{"threat: options of bash", "bash -n +n -c 'rm x'", "", true},
	{"threat: options of bash", "bash -rcfile a -c 'rm x'", "", true},
	{"rules: static eval", "eval \"r\"'m x'", "rm x", false},
	{"threat: trap", "trap 'rm x' EXIT", "rm x", false},
	{"threat: coproc", "coproc rm x", "rm x", true},
	{"threat: coproc", "coproc rm x=1", "", true},
	{"threat: coproc", "coproc rm export x", "", true},
	{"threat: coproc", "coproc rm a=b x", "", true},
	{"threat: a comment that is none", "x=(a)#; rm y", "", true},
	{"threat: a comment that is none", "declare x=(a)#; rm y", "", true},
	{"threat: a comment that is none", "x=(a) # y", "", false},
	{"threat: assignment", "x=$(rm x)", "rm x", false},
	{"threat: assignment", "x=`rm x` ls", "ls | rm x", false},
	{"threat: redirection", "ls > $(rm x)", "rm x", false},
	{"threat: -- after a keyword", "time -- rm x", "", true},
	{"threat: -- after a keyword", "time -p -- rm x", "", true},
	{"threat: jobs -x", "jobs -x rm x", "", true},
	{"threat: jobs -x", "jobs -lx rm x", "", true},
	{"threat: jobs -x", "jobs \"$o\" rm x", "", true},
}

var wrapperRows = []row{
	{"rules: timeout", "timeout 5 rm x", "rm x", false},
	{"rules: timeout", "timeout --sig KILL -k5 5s rm x", "rm x", false},
	{"rules: time", "time rm x", "rm x", false},
	{"rules: time", "/usr/bin/time -f %e rm x", "rm x", false},
	{"rules: nice", "nice -n 5 rm x", "rm x", false},
	{"rules: nohup", "nohup rm x &", "rm x", false},
	{"rules: stdbuf", "stdbuf -oL -e 0 rm x", "rm x", false},
	{"rules: command", "command -p rm x", "rm x", false},
	{"rules: builtin", "builtin eval 'rm x'", "rm x", false},
	{"rules: env", "env -u A -C /tmp B=1 rm x", "rm x", false},
	{"neighbour: permission by prefix", "env rm -rf x", "rm -rf x", false},
	{"rules: env -S", "env -S 'rm x'", "", true},
	{"rules: env -S", "env --split='rm x'", "", true},
	{"rules: sudo", "sudo -u root -- rm x", "rm x", false},
	{"rules: sudo", "sudo A=1 rm x", "rm x", false},
	{"rules: sudo", "sudo -i", "", true},
	{"rules: doas", "doas -u root rm x", "rm x", false},
	{"rules: xargs", "ls | xargs -n1 -0 rm", "rm {}", false},
	{"rules: xargs", "ls | xargs -I% rm a%", "rm a%", false},
	{"rules: xargs", "ls | xargs -I{} {} x", "", true},
	{"rules: xargs", "ls | xargs sh -c", "", true},
	{"rules: xargs", "ls | xargs env", "", true},
	{"rules: exec", "exec -a ls rm x", "rm x", false},
	{"rules: find -exec", "find . -exec rm {} \\;", "rm {}", false},
	{"rules: find -exec", "find . -execdir ls {} + -ok rm {} ';'", "ls {} | rm {}", false},
	{"rules: find -exec", "find . -exec sh -c 'rm {}' \\;", "", true},
	{"rules: find -exec", "find . $x", "", true},
	{"threat: a word that may end -exec", "find . -exec ls {} \\;$x -exec rm {} \\;", "", true},
	{"threat: a word that may end -exec", "find . -exec ls {}\"$x\" + -exec rm {} +", "", true},
	{"threat: a word that may end -exec", "find . -exec ls \"$x\" -exec rm {} \\;", "", true},
	{"threat: a word that may end -exec", "find . -exec ls \"$x\" \"$y\" rm \\;", "", true},
	{"threat: fd -x", "fd -e o -x rm", "", true},
	{"threat: fd -x", "fd . --exec rm {}", "", true},
	{"threat: wrappers", "setsid ionice -c3 chrt -b 0 taskset -c 1 rm x", "rm x", false},
	{"threat: wrappers", "busybox rm x", "rm x", false},
	{"threat: wrappers", "flock /tmp/l rm x", "rm x", false},
	{"threat: wrappers", "flock /tmp/l -c 'rm x'", "", true},
	{"threat: wrappers", "npx $x", "", true},
	{"threat: wrappers", "strace rm x", "", true},
	{"threat: wrappers", "timeout --unknown 5 rm x", "", true},
	{"threat: wrappers", "timeout $T rm x", "", true},
	{"threat: wrappers", "flock a* rm x", "rm x", true},
	{"threat: wrappers", "env A=$x rm y", "", true},
	{"threat: wrappers", "gosu root rm x", "", true},
	{"threat: wrappers", "/lib/ld-linux-aarch64.so.1 /bin/rm x", "", true},
	{"threat: deep nesting", strings.Repeat("env ", 40) + "ls", "", true},
}

var wordRows = []row{
	{"rules: escapes", `r\m x`, "rm x", false},
	{"rules: quoting", `'r'"m" x`, "rm x", false},
	{"rules: absolute paths", `/bin/rm x`, "rm x", false},
	{"rules: $'..'", `$'\x72\155' x`, "", true},
	{"rules: $'..'", `$'\cr' x`, "", true},
	{"rules: braces", "{rm,-rf,x}", "", true},
	{"rules: braces", "env {x,rm} y", "", true},
	{"rules: braces", "npm {x,--script-shell=./x} y", "", true},
	{"rules: braces", "mkdir -p src/{a,b} {1..9}", "", false},
	{"threat: glob in command position", "/bin/r? x", "", true},
	{"rules: dynamic name", "$CMD x", "", true},
	{"rules: dynamic name", "$(echo rm) x", "", true},
	{"rules: dynamic name", "cat${IFS}.env", "", true},
	{"rules: dynamic name", "~root/bin/x", "", true},
	{"threat: extended pattern", "!(rm x)", "", true},
	{"threat: white space in a name", `"rm x" y`, "", true},
}

// TestBenign asks that ordinary commands come out decided: a rule that cannot be
// applied to them would be of no use. A rule that names npx or uv run covers what these start.
func TestBenign(t *testing.T) {
	texts := corpus(t, "benign.txt")
	if len(texts) < 300 {
		t.Fatalf("only %d texts", len(texts))
	}
	for _, text := range texts {
		a := Analyze(text)
		left := slices.DeleteFunc(a.Commands, func(c Simple) bool { return len(c.Undecidable) == 0 || c.Interprets() })
		if len(a.Undecidable) > 0 && len(left) > 0 {
			t.Errorf("%q: undecidable %q", text, a.Undecidable)
		}
	}
	for _, text := range corpus(t, "commands.txt") {
		if a := Analyze(text); len(a.Undecidable) == 0 {
			t.Errorf("%q: decided", text)
		}
	}
}

// TestRunners holds that rules for rm see what runners start.
func TestRunners(t *testing.T) {
	for _, text := range []string{
		"dotenvx run -- rm x",
		"dotenv run rm x",
		"dotenv -e f -- rm x",
		"mise x node@20 -- rm x",
		"opam exec --switch a -- rm x",
		"npm -w a exec -- rm x",
		"pnpm --filter a exec rm x",
		"yarn workspace a exec rm x",
		"hatch -e a run rm x",
		"npx --unknown a rm x",
		"npx --unknown rm x",
	} {
		if forms := Analyze(text).Commands[0].Forms(); !slices.Contains(forms, "rm x") {
			t.Errorf("%s: forms %q; rm x is not among them", text, forms)
		}
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"rm x", []string{"rm x"}},
		{"/bin/rm x", []string{"/bin/rm x", "rm x"}},
		{`echo "a  b"`, []string{"echo a  b", `echo "a  b"`}},
		{"A=1 rm   x", []string{"rm x", "A=1 rm x"}},
		{"git -C d push -f", []string{"git -C d push -f", "git push -f"}},
		{"npx eslint .", []string{"npx eslint .", "eslint ."}},
		{"uv run bash -c 'rm x'", []string{"uv run bash -c rm x", "bash -c rm x", "rm x", "uv run bash -c 'rm x'"}},
	}
	for _, tt := range tests {
		if got := Analyze(tt.text).Commands[0].Forms(); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNesting(t *testing.T) {
	a := Analyze("sudo -u x timeout 5 bash -c 'ls; A=1 rm y'")
	want := []struct {
		text  string
		outer int
	}{
		{"sudo -u x timeout 5 bash -c ls; A=1 rm y", -1},
		{"timeout 5 bash -c ls; A=1 rm y", 0},
		{"bash -c ls; A=1 rm y", 1},
		{"ls", 2},
		{"rm y", 2},
	}
	if len(a.Commands) != len(want) {
		t.Fatalf("got %d commands, want %d", len(a.Commands), len(want))
	}
	for i, c := range a.Commands {
		if c.Text != want[i].text || c.Outer != want[i].outer {
			t.Errorf("%d: got %q in %d, want %+v", i, c.Text, c.Outer, want[i])
		}
	}
}

func TestSafeAssigns(t *testing.T) {
	tests := []struct {
		text string
		want bool
	}{
		{"ls", true},
		{"NODE_ENV=test LC_ALL=C ls", true},
		{"PAGER=cat git log", true},
		{"FOO=1 ls", true},
		{"CC=x ls", false},
		{"PATH=. ls", false},
		{"export CC=x", false},
		{"export CI=1", true},
		{"IFS= read -r x", true},
		{"env CC=x ls", false},
	}
	for _, tt := range tests {
		if got := Analyze(tt.text).Commands[0].SafeAssigns(); got != tt.want {
			t.Errorf("%q: got %v", tt.text, got)
		}
	}
}

func TestConcurrent(t *testing.T) {
	texts := corpus(t, "tricky.txt")
	done := make(chan int)
	for range 4 {
		go func() {
			n := 0
			for _, text := range texts {
				n += len(Analyze(text).Commands)
			}
			done <- n
		}()
	}
	first := <-done
	for range 3 {
		if n := <-done; n != first {
			t.Errorf("got %d and %d commands", first, n)
		}
	}
}

// corpus reads texts that are separated by lines of "---".
func corpus(t testing.TB, name string) []string {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for text := range bytes.SplitSeq(data, []byte("\n---\n")) {
		texts = append(texts, strings.TrimSuffix(string(text), "\n---"))
	}
	return texts
}
