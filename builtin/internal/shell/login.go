package shell

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// A Login finds the PATH of the user's login shell. A server that was started by a desktop program has a PATH without
// Homebrew, nvm, cargo and the like, but the login shell knows them. So it is run once, in the background, to print
// its PATH.
//
// It runs in /, because direnv and version managers execute files in the working directory. It runs as an interactive
// login shell, because many tools add themselves to PATH only in the interactive part of .bashrc or .zshrc. It gets
// the system's directories of the inherited PATH: start-up files call programs by name, and commands may have written
// to the other directories. It is supervised like a command. If it does not answer in time, it is killed with
// everything it started, and the inherited PATH stays in use.
//
// Commands wait for the answer only if the inherited PATH is bare, and only for a short time after the start of the
// server: clients take longer than that to send the first command, and a start-up file that hangs must not delay all
// commands until the timeout.
type Login struct {
	start   supervise.Starter
	env     []string
	timeout time.Duration
	until   time.Time
	known   chan struct{} // closed when commands need not wait for the answer any more
	once    sync.Once
}

// answerMax bounds how many bytes start-up files may print before the answer.
const answerMax = 1 << 20

// Marks around the answer, in case start-up files print as well.
const (
	answerStart = "toolhost-path<"
	answerEnd   = ">toolhost-path"
)

// NewLogin returns a Login for an inherited environment. The shell must answer within timeout. Commands wait for the
// answer for the duration wait at most, counted from now.
func NewLogin(start supervise.Starter, inherited []string, timeout, wait time.Duration) *Login {
	l := &Login{start: start, env: inherited, timeout: timeout, until: time.Now().Add(wait), known: make(chan struct{})}
	if !bare(lookup(inherited, "PATH")) {
		l.Done()
	}
	return l
}

// bare reports whether a PATH has nothing but the system's own directories: it
// then comes from a desktop program or an init system, not from a shell.
func bare(path string) bool {
	for _, dir := range filepath.SplitList(path) {
		if !slices.Contains(systemDirs, dir) {
			return false
		}
	}
	return true
}

var systemDirs = append(filepath.SplitList(fallbackPath), "/usr/games", "/usr/local/games", "/snap/bin")

// systemPath returns a PATH with only those directories that belong to the system.
func systemPath(path string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return !slices.Contains(systemDirs, d) })
	if len(dirs) == 0 {
		return fallbackPath
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// Done says that commands need not wait for the answer any more.
func (l *Login) Done() { l.once.Do(func() { close(l.known) }) }

// Wait waits for the answer, but not longer than commands do.
func (l *Login) Wait(ctx context.Context) {
	select {
	case <-l.known:
		return
	default:
	}
	timer := time.NewTimer(time.Until(l.until))
	defer timer.Stop()
	select {
	case <-l.known:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Join runs the login shell, which is bash if the user has none. It returns the environment with the login shell's
// PATH merged in, and whether that changed anything.
func (l *Login) Join(ctx context.Context, bash string, env []string) ([]string, bool) {
	return withPath(env, l.ask(ctx, bash, env))
}

// ask returns the PATH of the login shell, or "" if it cannot be had.
func (l *Login) ask(ctx context.Context, bash string, env []string) string {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return ""
	}
	defer r.Close()
	proc, err := l.start(supervise.Spec{
		Argv:  askPath(loginShell(l.env, bash)),
		Dir:   rootDir,
		Env:   setVar(slices.Clone(env), "PATH="+systemPath(lookup(env, "PATH"))),
		Files: []*os.File{null, w, null},
	})
	w.Close()
	if err != nil {
		return ""
	}
	// The deadline ends the reading below when the time is over or ctx is done.
	r.SetReadDeadline(time.Now().Add(l.timeout))
	defer context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Now()) })()
	answer := readAnswer(r)
	proc.Kill()
	proc.Wait()
	return answer
}

// printPath prints the answer. Fish prints its list variable PATH with colons when it is quoted, so one form serves
// all shells.
const printPath = `printf '` + answerStart + `%s` + answerEnd + `\n' "$PATH"`

// askBash makes bash read the start-up files of a login shell and those of an interactive one, because a terminal may
// start either. It prints the answer at the end, and also before a start-up file replaces this shell by another (exec
// zsh, exec tmux).
const askBash = `trap '` + `printf "` + answerStart + `%s` + answerEnd + `\n" "$PATH"` + `' EXIT
exec() {
	if [ $# -gt 0 ]; then ` + printPath + `; fi
	builtin exec "$@"
}
[ ! -r /etc/profile ] || . /etc/profile
asked=
for file in ~/.bash_profile ~/.bash_login ~/.profile; do
	if [ -r "$file" ]; then
		case $(<"$file") in *bashrc*) asked=1 ;; esac
		. "$file"
		break
	fi
done
[ -n "$asked" ] || [ ! -r ~/.bashrc ] || . ~/.bashrc
`

// askPath returns the command that prints the PATH of a shell. A shell that does not understand it prints no answer.
func askPath(shell string) []string {
	if filepath.Base(shell) == "bash" {
		return []string{shell, "--norc", "-i", "-c", askBash}
	}
	return []string{shell, "-l", "-i", "-c", printPath}
}

// readAnswer reads until the end of the answer, and not of the pipe: processes that start-up files left running may
// hold it open.
func readAnswer(r io.Reader) string {
	var got bytes.Buffer
	buf := make([]byte, 4<<10)
	for got.Len() < answerMax {
		n, err := r.Read(buf)
		got.Write(buf[:n])
		if path, ok := parseAnswer(got.String()); ok {
			return path
		}
		if err != nil {
			break
		}
	}
	return ""
}

// parseAnswer finds the PATH in what the login shell printed.
func parseAnswer(text string) (string, bool) {
	_, rest, ok := strings.Cut(text, answerStart)
	if !ok {
		return "", false
	}
	path, _, ok := strings.Cut(rest, answerEnd)
	return path, ok
}

// mergePath merges the login shell's PATH into the inherited one. Directories that only the inherited one has come
// first, because the server may have been started in a virtual environment or a development shell. The others follow
// in the login shell's order. Relative entries are dropped: they would be looked up in the working directory.
func mergePath(inherited, login string) string {
	theirs := slices.DeleteFunc(filepath.SplitList(login), func(d string) bool { return !filepath.IsAbs(d) })
	var merged []string
	for _, dir := range filepath.SplitList(inherited) {
		if filepath.IsAbs(dir) && !slices.Contains(theirs, dir) && !slices.Contains(merged, dir) {
			merged = append(merged, dir)
		}
	}
	for _, dir := range theirs {
		if !slices.Contains(merged, dir) {
			merged = append(merged, dir)
		}
	}
	return strings.Join(merged, string(filepath.ListSeparator))
}

// withPath returns env with the login shell's PATH merged in, and whether that
// changed anything.
func withPath(env []string, login string) ([]string, bool) {
	old := lookup(env, "PATH")
	merged := mergePath(old, login)
	if login == "" || merged == old {
		return env, false
	}
	return setVar(env, "PATH="+merged), true
}
