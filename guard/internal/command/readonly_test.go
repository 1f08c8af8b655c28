package command

import (
	"slices"
	"strings"
	"testing"
)

// looks is what a guard asks before it takes a text for read-only, but for the
// files: all is decided, and every command is in the set.
func looks(a *Analysis) bool {
	if len(a.Undecidable) > 0 {
		return false
	}
	return !slices.ContainsFunc(a.Commands, func(c Simple) bool { return !c.ReadOnly() })
}

func TestReadOnly(t *testing.T) {
	for _, text := range []string{
		"ls -la", "cat a b", "echo hi", "pwd", "head -n 5 f", "tail -f f", "grep -rn x .", "find . -name '*.go'", "wc -l f", "which go", "diff -u a b", "stat f", "du -sh .",
		"cd src", "cd src && grep -rn foo . | wc -l", "/bin/ls", "/usr/bin/cat f",
		"npm --version", "file f", "timeout 5 ls", "nice ls", "env LC_ALL=C ls", "bash -c 'ls; pwd'", "command -v go", "time ls", "LC_ALL=C sort f", "sort -u f", "uniq -c", "uniq f", "date +%F", "date -u",
		"sed -n 1,5p f", "sed 's/a/b/' f", "awk '{print $1}' f", "rg -n foo src", "tree -L 2", "xxd f", "if [ -f a ]; then cat a; fi",
		"f() { ls; }; f", "find . -type f | head", "python3 --version", "node -v", "cat <<< hi", "export CI=1 && ls",
		"bash -n f.sh", "trap 'echo bye' EXIT",
		"tsort f",
		"node --version", "node -v; npm -v", "perl -v", "ruby --version", "php -v", "lua -v", "gdb --version", "psql --version", "sqlite3 -version", "bash --version", "python3.12 -V", "deno --version",
	} {
		if a := Analyze(text); !looks(a) {
			t.Errorf("%q is not read-only: %q", text, a.Undecidable)
		}
	}
}

func TestNotReadOnly(t *testing.T) {
	for _, text := range []string{
		"rm x", "find . -delete", "find . -execdir ls {} \\;", "find . -exec rm {} \\;", "find . -ok ls {} \\;", "find . -fprint f", "find . -fls f", "find $x", "find \"$x\"",
		"rg --pre x y", "rg -z x", "sort -o f g", "sort --out=f g", "sort -uo f g", "sort --compress-program=x f", "sort $x", "sort *",
		"git -c a.b=c log", "git diff --output=f", "git log --outp=f", "git diff --ext-diff", "git grep -O x", "git diff --no-index a b", "git -C $d status", "cd $d && git status", "git -C d checkout x",
		"git branch -- x", "git tag -- v1", "git symbolic-ref x -- y", "git config set", "git config --list -f x", "git config get --file x y", "git stash -- list",
		"git branch x", "git branch -D main", "git tag v1", "git tag -d v1", "git remote add a b", "git stash", "git stash pop", "git config a.b c", "git checkout x", "git push", "git fetch",
		"git reflog expire", "git worktree add a", "git cat-file --filters HEAD:f", "git show --textconv HEAD:f", "git help log",
		"fd -x rm", "fd -X rm", "fd --exec rm", "sed -i s/a/b/ f", "sed -ni p f", "sed -n --in-place p f", "sed 's/a/b/w f' g", "uniq $x", "date -s x", "date 0101", "tree -o f",
		"ps auxe", "go version", "tar xf x", "tar tf x --to-command=y", "unzip x", "cargo --version", "yarn --version", "hostname x",
		"./ls", "/tmp/ls", "bin/cat f", "~/bin/ls", "md5sum -c f", "sha256sum --check f", "shasum -a 256 -c f", "PATH=. ls", "CC=x ls", "env CC=x ls", "sudo ls", "python3 x.py", "ls | xargs rm", "ls | xargs sort", "env", "npm test", "bash f.sh",
		"diff --paginate a b", "diff -l a b", "base64 -o f g", "eval \"$x\"", "timeout 5 rm x", "f() { rm x; }; f", "g; g() { ls; }", "f() { ls; }; ./f", "foo", "exec 3<f; foo", "kill 1",
		"sort --files0-from=f", "sort --files0=f", "find -files0-from f", "strings @f", "strings -n 5 @f", "file -f f", "file --magic-file=f g",
		"jq -n 'import \"a\" as $d {search:\"/b\"}; $d'", "jq -n 'include \"a\"; .'", "jq -rf f", "jq -L d .",
		"git diff /dev/null /etc/x", "git diff -- ../x y", "git diff ~/x y", "git diff $x", "git blame --ignore-revs-file=/etc/x f", "git blame -S f g", "git blame --ignore-revs /etc/x f",
		"git grep -nOx y", "git grep -iO'x y' z", "git grep -nff y", "git blame -wSf g", "bash -n +n f", "bash -n +o noexec f",
		"echo x | tclsh --version", "tclsh8.6 -v", "expect --version", "expect -v", "erl --help", "erl -version", "guile --help", "ocaml -v", "dc --version", "sh --version", "echo x | sh --help",
		"ash --version", "mksh --version", "tcsh --version", "dash -V", "python3 --version x", "python3 -v", "lua --version", "mongo --help", "at -V", "batch --version", "expect -V", "fish --version", "zsh --version x",
		"echo $(touch x)", "ls() { :; }; ls", "if x; then f() { ls; }; fi; f",
	} {
		if looks(Analyze(text)) {
			t.Errorf("%q is read-only", text)
		}
	}
}

// list writes words in one line, a "?" before those that are not static.
func list(words []Word) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		if w.Static {
			out = append(out, w.Text)
		} else {
			out = append(out, "?"+w.Text)
		}
	}
	return strings.Join(out, " ")
}

func TestFiles(t *testing.T) {
	tests := []struct{ text, reads, writes string }{
		{"cat a b", "a b", ""},
		{"cat -n -- -a", "-a", ""},
		{"cat ~/.ssh/id $HOME/x \"$y\" .e*", "~/.ssh/id ~/x ?\"$y\" ?.e*", ""},
		{"head -n 5 a", "a", ""},
		{"tail -n5 a", "a", ""},
		{"grep -rn foo src", "src", ""},
		{"grep -e foo -f pats a", "pats a", ""},
		{"grep -f.env a", ".env a", ""},
		{"grep --file=.env a", ".env a", ""},
		{"rg -g '*.go' foo src", "src", ""},
		{"sed -n 1p a", "a", ""},
		{"sed -i s/a/b/ a b", "a b", "a b"},
		{"sed -e p -i.bak a", "a", "a"},
		{"awk -F: '{print}' a", "a", ""},
		{"sed -n -f p a", "p a", ""},
		{"cp a b c", "a b", "c"},
		{"cp -t d a b", "a b", "d"},
		{"mv a b", "a", "b a"},
		{"rm -rf a b", "", "a b"},
		{"tee -a a", "", "a"},
		{"dd if=a of=b bs=1", "a", "b"},
		{"find src lib -name x", "src lib", ""},
		{"sort a -o b", "a", "b"},
		{"uniq a b", "a", "b"},
		{"foo a", "", ""},
		{"echo a", "", ""},
	}
	for _, tt := range tests {
		reads, writes := Analyze(tt.text).Commands[0].Files()
		if list(reads) != tt.reads || list(writes) != tt.writes {
			t.Errorf("%q: got reads %q writes %q, want %q and %q", tt.text, list(reads), list(writes),
				tt.reads, tt.writes)
		}
	}
}

func TestRedirects(t *testing.T) {
	tests := []struct{ text, reads, writes string }{
		{"ls > a", "", "a"},
		{"ls >> a 2> b", "", "a b"},
		{"ls &> a", "", "a"},
		{"ls &>> a", "", "a"},
		{"ls >| a", "", "a"},
		{"ls <> a", "a", "a"},
		{"ls >& a", "", "a"},
		{"ls 2>&1", "", ""},
		{"ls >&-", "", ""},
		{"ls 3>&2-", "", ""},
		{"ls {fd}> a", "", "a"},
		{"ls > $x", "", "?$x"},
		{"cat < a", "a", ""},
		{"x=$(< a)", "a", ""},
		{"cat <<< a", "", ""},
		{"ls | tee -a a b", "", "a b"},
		{"> a", "", "a"},
		{"(ls) > a", "", "a"},
		{"while :; do :; done < a > b", "a", "b"},
		{"exec 3< a", "a", ""},
		{"ls > 'a b'", "", "a b"},
		{"f() { ls; } > a", "", "a"},
		{"bash x.sh", "x.sh", ""},
		{"xargs -a f ls", "f", ""},
		{"bash -c 'ls > a'", "", "a"},
		{"echo $(ls > a)", "", "a"},
	}
	for _, tt := range tests {
		a := Analyze(tt.text)
		if list(a.Reads) != tt.reads || list(a.Writes) != tt.writes {
			t.Errorf("%q: got reads %q writes %q", tt.text, list(a.Reads), list(a.Writes))
		}
	}
}
