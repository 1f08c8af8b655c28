//go:build unix

package shell

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/toolhost/toolhost/integration/samples"
	"golang.org/x/sys/unix"
)

// ignore are the fields that the text is made of.
var ignore = cmp.Options{cmpopts.IgnoreFields(Shown{}, "Bytes", "Lines"), cmpopts.IgnoreUnexported(Shown{})}

// said is an output that is shown whole.
func said(text string) Shown { return Shown{Text: text} }

func TestRun(t *testing.T) { testRun(t, nil) }

func testRun(t *testing.T, start supervise.Starter) {
	// A long drain: on a busy machine a process substitution may take its time.
	r := newRunner(t, Config{InheritPath: true, Drain: 5 * time.Second, Start: start})
	tests := []struct {
		name, text string
		want       Result
	}{
		{"both streams in order", "echo a; echo b >&2; echo c", Result{Shown: said("a\nb\nc\n"), Dir: "/"}},
		{"exit code", "false", Result{ExitCode: 1, Dir: "/"}},
		{"exit", "cd /usr; exit 3", Result{ExitCode: 3, Dir: "/usr"}},
		{"exit with output pending", "printf pending; exit 0", Result{Shown: said("pending"), Dir: "/"}},
		{"empty", "", Result{Dir: "/"}},
		{"comment", "# nothing", Result{Dir: "/"}},
		{"cd stays", "cd /usr/bin/..", Result{Dir: "/usr"}},
		{"cd in a subshell does not", "(cd /usr)", Result{Dir: "/"}},
		{"cd and failure", "cd /usr && false", Result{ExitCode: 1, Dir: "/usr"}},
		{"cd in a function", "f() { cd /usr; return 4; }; f", Result{ExitCode: 4, Dir: "/usr"}},
		{"set -e", "cd /usr; set -e; false; echo no", Result{ExitCode: 1, Dir: "/usr"}},
		{"set -u", "cd /usr; set -u; echo $nope", Result{Shown: said("bash: line 1: nope: unbound variable\n"), ExitCode: 127, Dir: "/usr"}},
		{"set -x does not show the wrapper", "set -x; cd /usr", Result{Shown: said("++ cd /usr\n"), Dir: "/usr"}},
		{"exec", "cd /usr; exec printf x", Result{Shown: said("x")}},
		{"EXIT trap of its own", "cd /usr; trap 'echo bye $?' EXIT; false", Result{Shown: said("bye 1\n"), ExitCode: 1, Dir: "/usr"}},
		{"EXIT trap of its own and exit", "cd /usr; trap 'echo bye' EXIT; exit 2", Result{Shown: said("bye\n"), ExitCode: 2}},
		{"EXIT trap of its own with a new status", "trap 'cd /usr; exit 5' EXIT; exit 2", Result{ExitCode: 5}},
		{"EXIT trap of a subshell", "(trap 'echo bye' EXIT; exit 3); cd /usr", Result{Shown: said("bye\n"), Dir: "/usr"}},
		{"DEBUG trap", "n=0; trap 'n=$((n+1))' DEBUG; :; :; trap - DEBUG; echo $n", Result{Shown: said("3\n"), Dir: "/"}},
		{"DEBUG trap that stays", "cd /usr; trap '[ $BASHPID = 1 ]' DEBUG; false", Result{ExitCode: 1, Dir: "/usr"}},
		{"exit in a function", "cd /usr; f() { exit 4; }; f", Result{ExitCode: 4}},
		{"functions named like what the wrapper uses", "exec() { echo mine; }; trap() { echo mine; }; echo() { printf mine; }; cd /usr", Result{Dir: "/usr"}},
		{"EXIT trap removed", "cd /usr; trap - EXIT", Result{Dir: "/usr"}},
		{"trap TERM ignored", "trap '' TERM; kill $$; echo alive", Result{Shown: said("alive\n"), Dir: "/"}},
		{"its own descriptors", "exec 3>/dev/null 9>/dev/null 4>&1; echo x >&4; cd /usr; exit 0", Result{Shown: said("x\n"), Dir: "/usr"}},
		{"descriptors closed", "exec 40>&- 4>&- 3>&-; cd /usr", Result{Dir: "/usr"}},
		{"no descriptors of ours", "for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 -a $n -lt 10 ] && [ -p $f ] && echo $n; done; true", Result{Dir: "/"}},
		{"killed by a signal", "kill -KILL $$", Result{ExitCode: 137, Signal: "SIGKILL"}},
		{"child killed by a signal", "bash -c 'kill -KILL $$'; exit $?", Result{Shown: said("bash: line 1: PID Killed                  bash -c 'kill -KILL $$'\n"), ExitCode: 137, Dir: "/"}},
		{"unbalanced quote", "cd /usr; echo 'x", Result{Shown: said("bash: eval: line 1: unexpected EOF while looking for matching `''\n"), ExitCode: 2, Dir: "/"}},
		{"bracket that closes nothing", "echo a\n} ; cd /usr", Result{Shown: said("a\nbash: eval: line 2: syntax error near unexpected token `}'\nbash: eval: line 2: `} ; cd /usr'\n"), ExitCode: 2, Dir: "/"}},
		{"quote that would end the wrapper's", `"; cd /usr; echo "`, Result{Shown: said("bash: line 1: ; cd /usr; echo : No such file or directory\n"), ExitCode: 127, Dir: "/"}},
		{"open here-document", "cat <<E\nx", Result{Shown: said("bash: line 2: warning: here-document at line 1 delimited by end-of-file (wanted `E')\nx\n"), Dir: "/"}},
		{"backslash at the end", `printf 'a\n' \`, Result{Shown: said("a\n"), Dir: "/"}},
		{"line numbers", "\n\necho $LINENO", Result{Shown: said("3\n"), Dir: "/"}},
		{"no arguments, no variables", `echo "$0 $# ${OLDPWD-none}"`, Result{Shown: said("bash 0 none\n"), Dir: "/"}},
		{"control characters arrive", "printf %s $'\\001\x01\x7f' | od -An -tx1 | tr -d ' '", Result{Shown: said("01017f\n"), Dir: "/"}},
		{"unicode", "echo 'é€😀'", Result{Shown: said("é€😀\n"), Dir: "/"}},
		{"standard input is empty", "cat; read x; echo $?", Result{Shown: said("1\n"), Dir: "/"}},
		{"no terminal", "(: </dev/tty) 2>/dev/null || echo none; tty", Result{Shown: said("none\nnot a tty\n"), ExitCode: 1, Dir: "/"}},
		{"output of a process substitution", "echo x > >(sleep 0.003; cat)", Result{Shown: said("x\n"), Dir: "/"}},
		{"redirection of everything", "exec > >(sed s/^/out:/) 2>&1; echo x", Result{Shown: said("out:x\n"), Dir: "/"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, r, Command{Text: test.text})
			if i := strings.Index(got.Text, " Killed "); i > 0 { // the process id
				got.Text = "bash: line 1: PID" + got.Text[i:]
			}
			if diff := cmp.Diff(&test.want, got, ignore); diff != "" {
				t.Errorf("%q (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

// TestStateDoesNotPass runs pairs: whatever the first does, the second sees none
// of it.
func TestStateDoesNotPass(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	for first, second := range map[string]string{
		"export X=1":              `echo "[$X]"`,
		"ls() { echo mine; }":     `echo "[$(type -t ls | tr -d file)]"`,
		"shopt -s extglob":        `shopt -q extglob && echo "[on]" || echo "[]"`,
		"umask 077":               `[ $(umask) = 0077 ] && echo "[077]" || echo "[]"`,
		"set -e":                  `false; echo "[]"`,
		"alias true=false":        `true && echo "[]"`,
		"trap 'echo mine' EXIT":   `echo "[]"`,
		"exec 7>/dev/null":        `[ -e /proc/self/fd/7 ] && echo "[7]" || echo "[]"`,
		"ulimit -f 0":             `[ $(ulimit -f) = 0 ] && echo "[0]" || echo "[]"`,
		"exec >/dev/null":         `echo "[]"`,
		"readonly PATH; PATH=":    `echo "[]"`,
		"bind -x '\"x\": echo'":   `echo "[]"`,
		"set -- a b c; REPLY=foo": `echo "[$1]"`,
	} {
		run(t, r, Command{Text: first})
		if got := run(t, r, Command{Text: second}); got.Text != "[]\n" {
			t.Errorf("after %q, %q gave %q", first, second, got.Text)
		}
	}
}

// TestLikeBash compares with `bash -c` in the same environment.
func TestLikeBash(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	for _, text := range samples.Of([]string{
		"for i in 1 2 3; do echo $i; [ $i = 2 ] && break; done",
		"x=1; (x=2; echo $x); echo $x",
		"f() { local a=1; echo $a; return 7; }; f; echo $?",
		"echo $((1+2)) `echo old` $(echo new)",
		"a=(1 2 3); echo ${#a[@]} ${a[-1]}",
		"trap 'echo err' ERR; false; echo done",
		"set -e; trap 'echo err' ERR; false",
		"set -o pipefail; false | true; echo $?",
		"set -e; if false; then :; fi; echo on; false; echo no",
		"cat <<'E'\n$x `y`\nE",
		"printf '%s\\n' {a,b}{1,2} ~root",
		"echo a; exit 300",
		"IFS=0; x=a0b; echo $x; (exit 10)",
		"return 5", "break", "exit nonsense", "exit 1 2; echo on",
		"echo \"unterminated", "if true", "case x in", "echo $(", "((", "a=(", "}", ")", ";;", "&& true",
		"unset REPLY; echo \"[$REPLY]\"",
		"kill -TERM $$; echo no",
		"bash -c 'exit 9'", "nosuchcommand", "/", "/etc/passwd",
		"set -n; echo no", "set -f; echo /*bin",
		"coproc cat; kill $COPROC_PID; wait 2>/dev/null; echo on",
		"declare -r x=1; x=2; echo on", "set -o posix; declare -r x=1; x=2; echo no",
		"shopt -s expand_aliases\nalias hi='echo aliased'\nhi",
		"sleep 0.01 & wait; echo waited", "wait -n; echo $?", "jobs; fg; echo $?",
		"echo a | while read x; do echo \"<$x>\"; done", "mapfile -t m < <(printf '1\\n2\\n'); echo ${m[1]}",
		"readonly -f nosuch; type eval", "eval 'echo ${x?oops}'; echo no",
		"echo é | wc -m", "LC_ALL=C; echo é | wc -c", "exec nosuchprogram; echo no",
		"enable -n pwd; echo x", "exit() { echo mine; }; echo x",
		"set -u; echo \"$1\"", "echo \"$@\" $*", "shift; echo $?",
		strings.Repeat("echo 0123456789; ", 5000) + "true",
	}, 1) {
		c := exec.Command(r.bash, "--noprofile", "--norc", "-c", text)
		c.Args[0] = "bash"
		c.Env, c.Dir = r.env, "/"
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		want := c.ProcessState.ExitCode()
		if want < 0 {
			want = 128 + 15
		}
		got := run(t, r, Command{Text: text})
		text := func(s string) string {
			var b strings.Builder
			for line := range strings.Lines(s) {
				if p, m, ok := strings.Cut(line, ": line "); ok { // eval: and -c: count as one
					_, m, _ = strings.Cut(m, ": ")
					line = strings.TrimSuffix(strings.TrimSuffix(p, ": eval"), ": -c") + ": " + m
				}
				b.WriteString(line)
			}
			return b.String()
		}
		wantText := CleanText(string(out))
		if got.Cut {
			wantText = got.Text
		}
		if diff := cmp.Diff(text(wantText), text(got.Text)); diff != "" || got.ExitCode != want {
			t.Errorf("%.60q: exit %d, bash %d (-bash +got)\n%s", c.Args[4], got.ExitCode, want, diff)
		}
	}
}

func TestBadInput(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		c    Command
		want string
	}{
		{"NUL", Command{Text: "echo \x00", Dir: "/"}, "NUL"},
		{"invalid UTF-8", Command{Text: "echo \xff", Dir: "/"}, "not valid UTF-8"},
		{"missing directory", Command{Text: "true", Dir: "/no/such"}, "/no/such does not exist"},
		{"file as directory", Command{Text: "true", Dir: file}, "not a directory"},
		{"relative directory", Command{Text: "true", Dir: "tmp"}, "not an absolute path"},
		{"no directory", Command{Text: "true"}, "not an absolute path"},
		{"negative time-out", Command{Text: "true", Dir: "/", Timeout: -1}, "negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := r.Run(t.Context(), test.c)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v; want an error with %q", res, err, test.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Run(ctx, Command{Text: "true", Dir: "/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
}

func TestDirectories(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "-a 'b\" $(c)\n\\d*é")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := run(t, r, Command{Text: "pwd", Dir: odd}); got.Text != odd+"\n" || got.Dir != odd {
		t.Errorf("odd name: got %q in %q", got.Text, got.Dir)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(odd, link); err != nil {
		t.Fatal(err)
	}
	if got := run(t, r, Command{Text: "true", Dir: link}); got.Dir != odd {
		t.Errorf("link: ended in %q", got.Dir)
	}
	got := run(t, r, Command{Text: "mkdir t; cd t; rmdir ../t; echo on", Dir: dir})
	if want := (&Result{Shown: said("on\n"), DirGone: true}); !cmp.Equal(want, got, ignore) {
		t.Error("deleted directory", cmp.Diff(want, got, ignore))
	}
	got = run(t, r, Command{Text: "mkdir t; cd t; mv ../t ../u; echo on", Dir: dir})
	if want := (&Result{Shown: said("on\n"), Dir: filepath.Join(dir, "u")}); !cmp.Equal(want, got, ignore) {
		t.Error("renamed directory", cmp.Diff(want, got, ignore))
	}
	if os.Getuid() == 0 {
		return // root enters everything
	}
	shut := filepath.Join(dir, "shut")
	if err := os.Mkdir(shut, 0o600); err != nil {
		t.Fatal(err)
	}
	if res, err := r.Run(t.Context(), Command{Text: "echo ran", Dir: shut}); err == nil ||
		!strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("directory without x: got %+v, %v", res, err)
	}
}

func TestLargeCommand(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	text := "x='" + strings.Repeat("0123456789abcde\n", 1<<16) + "'; echo ${#x}"
	if got := run(t, r, Command{Text: text}); got.Text != "1048576\n" {
		t.Errorf("got %q", got.Text)
	}
}

// TestFilesBlock: whichever process starts the process gets descriptors in the mode that
// programs expect.
func TestFilesBlock(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true, Start: func(s supervise.Spec) (supervise.Process, error) {
		for i, f := range s.Files {
			conn, err := f.SyscallConn()
			if err != nil {
				return nil, err
			}
			conn.Control(func(fd uintptr) {
				if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
					t.Errorf("descriptor %d: flags %#x, %v", i, flags, err)
				}
			})
		}
		return supervise.Start(s)
	}})
	run(t, r, Command{Text: "true"})
}

// TestNothingLost: the shell ends at once with more output pending than the reader
// can have taken.
func TestNothingLost(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true, Limits: Limits{Head: 4 << 20}})
	for range 5 {
		got := run(t, r, Command{Text: "head -c 2000000 /dev/zero | tr '\\0' x; exit 3"})
		if len(got.Text) != 2_000_000 || got.Bytes != 2_000_000 || got.ExitCode != 3 {
			t.Errorf("%d characters of %d bytes, exit code %d", len(got.Text), got.Bytes, got.ExitCode)
		}
	}
}

func TestMissingBash(t *testing.T) {
	was := bashPlaces
	bashPlaces = nil
	t.Cleanup(func() { bashPlaces = was })
	r := newRunner(t, Config{Env: []string{"PATH=/no"}})
	if _, err := r.Run(t.Context(), Command{Text: "true", Dir: "/"}); err == nil ||
		!strings.Contains(err.Error(), "bash was not found") {
		t.Errorf("got %v", err)
	}
}

func TestClosed(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	r.Close()
	if _, err := r.Run(t.Context(), Command{Text: "true", Dir: "/"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestPromptsFail runs what would wait for somebody at a terminal. Without the
// runner's care each would last until its time-out.
func TestPromptsFail(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	r := newRunner(t, Config{InheritPath: true})
	dir := t.TempDir()
	run(t, r, Command{Text: "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 1", Dir: dir})
	for _, text := range []string{
		"read x",
		"head -1 /dev/tty",
		"git -c user.name=a -c user.email=a@b commit --allow-empty",
		"git -c user.name=a -c user.email=a@b rebase -i --root",
		"git add -p; false",
		"git clone -q https://user@127.0.0.1:1/x",
		"command -v npm >/dev/null || exit 1; npm init",
		"crontab -e </dev/null; false",
		"sudo -k; sudo -n true; su nobody -s /nonexistent; false",
		"python3 -c 'input()'",
		"select x in a b; do echo $x; done; false",
	} {
		got := run(t, r, Command{Text: text, Dir: dir, Timeout: 30 * time.Second})
		if got.TimedOut || got.ExitCode == 0 {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestEndedAtOnce ends commands before or while their shell comes to them: what it reports then is not the command's.
func TestEndedAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	r := newRunner(t, Config{InheritPath: true})
	dir := t.TempDir()
	for range samples.Rounds(20) {
		got := run(t, r, Command{Text: "sleep 60", Dir: dir, Timeout: 1})
		if !got.TimedOut || got.ExitCode == 0 || got.Signal == "" || got.Dir != "" && got.Dir != dir {
			t.Fatalf("got %+v", got)
		}
	}
}

func TestProgress(t *testing.T) {
	r := newRunner(t, Config{InheritPath: true})
	fifo := filepath.Join(t.TempDir(), "fifo")
	seen := make(chan string, 100)
	released := false
	got := run(t, r, Command{
		Text: "mkfifo " + fifo + "; printf 'one\\ntwo'; read x < " + fifo + "; echo end",
		Output: func(tail string) {
			seen <- tail
			if tail == "one\ntwo" && !released {
				released = true
				if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
					t.Error(err)
				}
			}
		},
	})
	close(seen)
	if first := <-seen; first != "one\ntwo" {
		t.Errorf("first report %q", first)
	}
	if got.Text != "one\ntwoend\n" {
		t.Errorf("got %q", got.Text)
	}
}
