package remote

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

const (
	// launchTime is how long a launcher may take until its command says something.
	launchTime = 60 * time.Second
	// launchGrace is how long a launcher may take to end after its input has ended.
	launchGrace = time.Second
	// refusedTime is how long after a failed transfer the program is sent again: somebody may have made room.
	refusedTime = time.Minute
	// maxReason is how much of what a launcher prints is kept, in bytes.
	maxReason = 2 << 10
	// maxNoise is how many lines a login shell may print before the script's.
	maxNoise = 1000
)

// FailMark begins the line in which the far side says why it fails, where the next link will fail too.
const FailMark = "toolhost-fail "

// The marks of the lines that scripts print, in addition to that of the greeting.
const (
	needMark = "toolhost-need " // followed by what uname says
	sendMark = "toolhost-send " // followed by the coding
	doneMark = "toolhost-done"
)

// A process is a launcher that runs, or a command in a pod, with its input and output.
type process struct {
	*bufio.Reader
	in     io.WriteCloser
	out    io.Closer
	kill   func() // ends it at once
	target Target
	ended  chan struct{} // closed after err is set

	mu      sync.Mutex
	printed []byte // the end of its error output
	err     error  // of its end
	killed  bool   // by us
	heard   string // the last line of its output that was not for us
}

// launch starts sh at a target and gives it a script, which may be made while the launcher starts.
func launch(ctx context.Context, t Target, script func() (string, error)) (*process, error) {
	p := &process{target: t, ended: make(chan struct{})}
	start := p.startProgram
	if t.Sandbox != nil {
		start = p.startInPod
	}
	if err := start(ctx); err != nil {
		return nil, err
	}
	text, err := script()
	if err == nil {
		ctx, cancel := p.limited(ctx)
		defer cancel()
		if _, err = io.WriteString(p.in, text); ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, closeReason(p, err)
	}
	return p, nil
}

// startProgram starts the launcher of a target, which outlives the context.
func (p *process) startProgram(context.Context) error {
	cmd := hostprogram.Command(context.Background(), p.target.Argv[0], p.target.Argv[1:]...)
	cmd.WaitDelay = launchGrace
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	cmd.Stdout, cmd.Stderr = w, keeper{p}
	if err := cmd.Start(); err != nil {
		out.Close()
		return Refusal{fmt.Errorf("%s is needed on this machine: %w", p.target.Argv[0], err)}
	}
	p.Reader, p.in, p.out = bufio.NewReaderSize(out, linkBuffer), in, out
	p.kill = func() { _ = cmd.Process.Kill() } // it has ended, or dies
	go p.end(cmd.Wait)
	return nil
}

// startInPod starts sh in the pod of a sandbox.
func (p *process) startInPod(ctx context.Context) error {
	command, err := p.target.Sandbox.exec(ctx, "sh")
	if err != nil {
		return err
	}
	out, w := io.Pipe()
	p.Reader, p.in, p.out, p.kill = bufio.NewReaderSize(out, linkBuffer), command, out, command.Kill
	go p.end(func() error {
		defer command.Kill()
		defer w.Close()
		return command.Run(w, keeper{p})
	})
	return nil
}

// end waits for the end.
func (p *process) end(wait func() error) {
	err := wait()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	close(p.ended)
}

// limited ends the launcher when ctx is done or after [launchTime], unless it is cancelled before.
func (p *process) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, launchTime,
		fmt.Errorf("%s did nothing for %s", p.target.program(), launchTime))
	stop := context.AfterFunc(ctx, func() { p.Close() })
	return ctx, func() { stop(); cancel() }
}

// A keeper keeps the end of what a launcher prints.
type keeper struct{ p *process }

func (k keeper) Write(text []byte) (int, error) {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	k.p.printed = append(k.p.printed, text...)
	k.p.printed = k.p.printed[max(0, len(k.p.printed)-maxReason):]
	return len(text), nil
}

// Write implements io.Writer.
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the launcher. One that runs as another user, such as sudo, cannot be killed: it is left.
func (p *process) Close() error {
	p.in.Close()
	p.out.Close()
	if !p.endsWithin(launchGrace) {
		p.mu.Lock()
		p.killed = true
		p.mu.Unlock()
		p.kill()
		p.endsWithin(launchGrace)
	}
	return nil
}

// endsWithin waits for the end of the launcher, and reports false if it has not come in time.
func (p *process) endsWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// Reason returns why the launcher, which was closed, has failed; nil if it has not.
func (p *process) Reason() error {
	select {
	case <-p.ended:
	default: // it cannot be ended
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := strings.Join(strings.Fields(string(p.printed)), " ")
	if text == "" { // docker reports there that a program is missing
		text = strings.Join(strings.Fields(p.heard), " ")
	}
	if p.err == nil {
		return nil
	}
	for _, h := range hints {
		if strings.Contains(text, h.says) {
			return Refusal{fmt.Errorf("%s: %s (%w); to see more: %s", p.target.program(), h.means, p.err,
				p.target.Check())}
		}
	}
	exit, _ := errors.AsType[*exec.ExitError](p.err)
	if p.killed || text == "" && exit != nil && exit.ExitCode() < 0 { // what it printed is not the reason
		return nil
	}
	if text == "" {
		text = "it printed nothing"
	}
	return fmt.Errorf("%s: %s (%w); to see more: %s", p.target.program(), text, p.err, p.target.Check())
}

// hints are what some texts of launchers mean, and what to do.
var hints = []struct{ says, means string }{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host key has changed: find out why before you remove the known one with ssh-keygen -R"},
	{"Host key verification failed", "the host key is not known: connect once with ssh yourself, and check it"},
	{"Permission denied (", "it wants a password or a key that is not there, and cannot ask: load your key into ssh-agent, or name it in ~/.ssh/config"},
	{"o such container", "there is no such container: start it first"},
	{`"sh": executable file not found`, "there is no sh, which toolhost needs"},
	{`exec: "sh"`, "there is no sh, which toolhost needs"},
}

// await returns what follows the mark in the first line that has one of the marks. It waits for [launchTime].
func (p *process) await(ctx context.Context, marks ...string) (mark, text string, err error) {
	ctx, cancel := p.limited(ctx)
	defer cancel()
	return p.scan(ctx, marks...)
}

// scan is await without the limit of [launchTime]. The caller ends the launcher when ctx is done.
func (p *process) scan(ctx context.Context, marks ...string) (mark, text string, err error) {
	for range maxNoise {
		line, err := readLine(p.Reader)
		for _, mark := range append(marks, FailMark) {
			if _, text, ok := strings.Cut(line, mark); ok {
				if mark == FailMark {
					p.Close()
					return mark, text, Refusal{fmt.Errorf("%s: %s", p.target.Name, strings.TrimSpace(text))}
				}
				return mark, text, nil
			}
		}
		if strings.TrimSpace(line) != "" {
			p.mu.Lock()
			p.heard = line
			p.mu.Unlock()
		}
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return "", "", closeReason(p, fmt.Errorf("the far side ended before it greeted: %w", err))
		}
	}
	return "", "", closeReason(p, errors.New("the far side prints something else than a greeting"))
}

// A Launcher opens links to a target: it starts the program there, and brings it there first where it is missing.
type Launcher struct {
	Target
	// Version names the program, and Args are those of its command dial.
	Version string
	Args    []string
	// Settings are texts of settings for it. They are no arguments: other users see those.
	Settings [][]byte
	// FarDir is the state directory there, where the program is put too; empty: that of the user there.
	FarDir string
	// Binary is the program for the other system; empty: this program, or one of the same release.
	Binary string
	// Say is told what takes time.
	Say func(string)

	sum       func() (string, error) // of the program; it names it there
	refused   error                  // why the program cannot be there: it is not sent again so soon
	refusedAt time.Time
}

// NewLauncher returns a launcher of a target.
func NewLauncher(t Target, binary string) *Launcher {
	l := &Launcher{Target: t, Binary: binary, Say: func(string) {}, sum: ownSum}
	if binary != "" {
		l.sum = sync.OnceValues(func() (string, error) { return checksum(binary) })
	}
	return l
}

// ownSum returns the checksum of this program, which all launchers share.
var ownSum = sync.OnceValues(func() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", err
	}
	return checksum(file)
})

// Dial is a [Dialer].
func (l *Launcher) Dial(ctx context.Context, moving func()) (io.ReadWriteCloser, error) {
	if l.Sandbox != nil {
		if err := l.Sandbox.prepare(ctx); err != nil {
			return nil, err
		}
	}
	for brought := false; ; brought = true {
		p, err := launch(ctx, l.Target, l.dialScript)
		if err != nil {
			return nil, err
		}
		mark, text, err := p.await(ctx, greetingMark, needMark)
		switch {
		case err != nil:
			return nil, err
		case mark == greetingMark:
			if l.Sandbox != nil {
				go l.Sandbox.touchUntil(l.Sandbox.sandbox, p.ended)
			}
			return link{p, io.MultiReader(strings.NewReader(mark+text+"\n"), p.Reader)}, nil
		}
		p.Close()
		if brought {
			return nil, fmt.Errorf("%s: the program was sent and is not there", l.Name)
		}
		if l.refused != nil && time.Since(l.refusedAt) < refusedTime {
			return nil, l.refused
		}
		if err := l.bring(ctx, text, moving); err != nil {
			if _, final := errors.AsType[Refusal](err); final {
				l.refused, l.refusedAt = err, time.Now()
			}
			return nil, err
		}
	}
}

// A link is a launcher whose command has greeted.
type link struct {
	*process
	r io.Reader
}

func (l link) Read(b []byte) (int, error) { return l.r.Read(b) }

// ownScript defines own, which fails where another user there could have put the program, or could replace it. root and
// the target of a link of the user are trusted. Where there is no ls, as in a container with one program, there are no
// other users either.
const ownScript = `own() {
for p in "$h" "$h/." "$h/program" "$d" "$d/toolhost"; do
[ -e "$p" ] || [ -h "$p" ] || continue
set -- $(ls -ldn "$p" 2>/dev/null)
[ $# -gt 3 ] || continue
case $3 in 0|"${EUID:-$(id -u)}") ;; *)
fail "$p belongs to another user there, who could replace the program: name another directory with --far-dir DIR" ;;
esac
case $1 in [!l]????w*|[!l]???????w*)
fail "other users there can replace the program: chmod go-w '$p' there, or name another directory with --far-dir DIR" ;;
esac
done
}
`

// installedScript makes d the directory of the program that is installed there, as in an image, if that is this program
// and the user there cannot change it.
const installedScript = `p=$(command -v toolhost) && [ ! -w "$p" ] && command -v sha256sum >/dev/null &&
s=$(sha256sum <"$p") && [ "${s%% *}" = "$sum" ] && d=${p%/*}
`

// place begins every script: it sets h to the state directory there, and d to the directory of the program in it, which
// no tool and no command of a host can write.
func (l *Launcher) place() (string, error) {
	sum, err := l.sum()
	if err != nil {
		return "", err
	}
	base := `h=${XDG_STATE_HOME:-${HOME:+$HOME/.local/state}}
[ -n "$h" ] || fail 'there is no home directory there: name a directory for the program with --far-dir DIR'
h=$h/toolhost
`
	if rest, ok := strings.CutPrefix(l.FarDir, "~/"); ok {
		base = "[ -n \"$HOME\" ] || fail 'there is no home directory there: name --far-dir DIR without ~'\nh=$HOME/" +
			quote(rest) + "\n"
	} else if l.FarDir != "" {
		base = "h=" + quote(l.FarDir) + "\n"
	}
	return ownScript + `fail() { printf '` + FailMark + `%s\n' "$(printf %s "$1" | tr '\n' ' ')"; exit 1; }
` + base + "sum=" + sum + "\nd=$h/program/" + quote(l.Version+"-"+sum[:12]) + "\n", nil
}

// dialScript starts the program. The braces make every shell read all of it first: a shell that reads byte by byte, as
// bash does, would leave the rest in the input of the program.
func (l *Launcher) dialScript() (string, error) {
	place, err := l.place()
	var args strings.Builder
	for _, arg := range l.Args {
		args.WriteString(" " + quote(arg))
	}
	if l.FarDir != "" {
		args.WriteString(` --state-dir="$h"`)
	}
	end := ""
	if len(l.Settings) > 0 { // base64 has none of the characters of the last line
		args.WriteString(" --settings-from=3 3<<'--'")
		for _, text := range l.Settings {
			end += base64.StdEncoding.EncodeToString(text) + "\n"
		}
		end += "--\n"
	}
	return "{\n" + place + `own
if [ -x "$d/toolhost" ]; then touch "$d" 2>/dev/null; else ` + installedScript + `fi
if [ -x "$d/toolhost" ]; then exec "$d/toolhost" dial` + args.String() + "\n" + end + `fi
echo "` + needMark + `$(uname -sm)"
exit 0
}
`, err
}

// quote quotes a word for sh.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
