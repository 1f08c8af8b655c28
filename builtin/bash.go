package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/resultstore"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// bashLimit is the longest result of Bash, in characters.
const bashLimit = 30_000

// bashInput is the input of [Bash].
type bashInput struct {
	Command     string `json:"command" jsonschema:"the command line"`
	Timeout     int    `json:"timeout,omitempty" jsonschema:"milliseconds after which the command is ended (default 120000, at most 600000)"`
	Description string `json:"description,omitempty" jsonschema:"what the command does, in 5 to 10 words"`
	Background  bool   `json:"run_in_background,omitempty" jsonschema:"start the command as a task and return its id at once"`
	Unsandboxed bool   `json:"dangerouslyDisableSandbox,omitempty" jsonschema:"run outside the sandbox; a person is always asked"`
}

// BashOutput is the structured result of [Bash].
type BashOutput struct {
	ExitCode   *int   `json:"exit_code,omitempty"` // of a command that has ended
	Signal     string `json:"signal,omitempty"`
	TimedOut   bool   `json:"timed_out"`
	Cwd        string `json:"cwd"`
	OutputPath string `json:"output_path,omitempty"`
	TaskID     string `json:"task_id,omitempty"`
	// Changed are the changes of the command in the roots; nil if there are none.
	Changed *changedFiles `json:"changed,omitempty"`
}

// changedFiles are the changes of a command.
type changedFiles struct {
	Files   int      `json:"files"`             // how many, and directories in which nothing else changed
	Names   []string `json:"names"`             // of the first 20: relative to the first root, or absolute
	Ignored int      `json:"ignored,omitempty"` // files in ignored directories, which are not kept
	// RawNames are the names in base64, if one of them is not valid UTF-8.
	RawNames []string `json:"raw_names,omitempty"`
}

// runsCommands reports whether Bash is offered: on Windows only if bash is installed. Elsewhere the call reports a
// missing bash.
func runsCommands(*Runtime) bool { return runtime.GOOS != "windows" }

// Bash runs a command.
var Bash = declare(Tool[bashInput]{
	Name:    "Bash",
	Title:   "Run a command",
	Brief:   "run a shell command",
	Core:    true,
	Limit:   bashLimit,
	Enabled: runsCommands,
	Refine: func(s *jsonschema.Schema) {
		s.Properties["timeout"].Default = []byte("120000")
	},
	Plan: func(_ context.Context, env *Env, in bashInput) (Plan, error) {
		in.Command = unixLines(in.Command)
		if strings.TrimSpace(in.Command) == "" {
			return Plan{}, errors.New("command: expected a command, got an empty text")
		}
		dir, note, err := workDir(env)
		if err != nil {
			return Plan{}, err
		}
		command := in.effect(dir)
		if name := needsTerminal(command); name != "" && !in.Background {
			return Plan{}, waitsMessage(name)
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{command}},
			Run:    func(ctx context.Context) (Result, error) { return runBash(ctx, env, in, command, note) },
		}, nil
	},
})

// unixLines makes the line breaks of a command LF if all of them are CRLF: bash takes a CR for a part of a word.
func unixLines(command string) string {
	if breaks := strings.Count(command, "\n"); breaks == 0 || breaks != strings.Count(command, "\r\n") {
		return command
	}
	return strings.TrimSuffix(strings.ReplaceAll(command, "\r\n", "\n"), "\r")
}

func (in bashInput) effect(dir guard.Path) guard.Exec {
	e := guard.NewExec(in.Command, dir)
	e.Unsandboxed, e.Background, e.Description = in.Unsandboxed, in.Background, in.Description
	return e
}

// workDir returns the directory in which the command starts: that in which the last command ended, if the command may
// work there, and otherwise the first root. The note says that it was reset.
func workDir(env *Env) (dir guard.Path, note string, err error) {
	root := env.Policy.Roots()[0]
	if last := env.Dir.Get(); last != "" && last != root {
		dir, err := env.Policy.Resolve(last)
		if err == nil {
			var info os.FileInfo
			if info, err = dir.Stat(); err == nil && info.IsDir() && dir.Real() == last && inside(env.Policy, last) {
				return dir, "", nil
			}
		}
		note = fmt.Sprintf("The working directory %s is gone or outside the roots; it was set back to %s.", last, root)
	}
	dir, err = env.Policy.Resolve(root)
	return dir, note, err
}

func inside(p *guard.Policy, dir string) bool {
	for _, root := range p.Roots() {
		if real, err := filepath.EvalSymlinks(root); err == nil && isBelow(dir, real) {
			return true
		}
	}
	return false
}

// runInRoot resets the working directory to the first root after the shell could not enter it. It runs the command
// there if the rules allow that without a question: they have judged the command for the other directory.
func runInRoot(ctx context.Context, env *Env, in bashInput, barred *shell.DirError) (Result, error) {
	root := env.Policy.Roots()[0]
	dir, err := env.Policy.Resolve(root)
	if err != nil || dir.Real() == barred.Dir {
		return Result{}, fmt.Errorf("the command was not run: %w", errors.Join(barred, err))
	}
	env.Dir.Set(root)
	note := fmt.Sprintf("The working directory was set back to %s: %v.", root, barred)
	command := in.effect(dir)
	intent := guard.Intent{Tool: env.Tool, Effects: []guard.Effect{command}}
	if env.Policy.Judge(intent).Action != guard.Allow {
		return Result{}, fmt.Errorf("the command was not run. %s Repeat the call to run it there", note)
	}
	return runBash(ctx, env, in, command, note)
}

// shorten cuts a saved output to what the client passes on, including the remarks.
func shorten(r *shell.Result, passes int, remarks []string) {
	const around = 200 // for the exit code and the note about the cut
	if passes > 0 {
		r.Shorten(max(passes-utf8.RuneCountInString(strings.Join(remarks, " "))-around, passes/2))
	}
}

// failed returns the error for a command that was not run. It closes a sandbox that has died.
func (s execEnv) failed(env *Env, err error) error {
	if s.sandbox != nil && errors.Is(err, sandbox.ErrClosed) {
		env.Runtime.sandboxes.Discard(env.sandboxKey(), s.sandbox)
		return errors.New("the command was not run: its sandbox had ended. A new one is started for the next command: " +
			"repeat the call")
	}
	return fmt.Errorf("the command was not run: %w", err)
}

// uncontained is a note that is shown once if nothing contains commands.
const uncontained = "Commands run here with the full rights of the user: no sandbox contains them. Rules on command " +
	"text apply, but a program can do more than its command line shows. This is said once."

// halfContained is a note that is shown once under Landlock, which cannot protect single files or filter hosts.
const halfContained = "Commands run here in a sandbox that keeps their writes in the workspace, ends what they " +
	"start, and leaves them no network, whatever sandbox.network allows. It cannot keep them from protected files in " +
	"the workspace, such as .git/hooks: rules on command text apply to those. This is said once."

// clampTimeout limits the requested timeout, and returns a note if it changes it.
func clampTimeout(millis int, limits ShellLimits) (time.Duration, string) {
	switch {
	case millis == 0:
		return limits.Timeout, ""
	case millis < 0:
		return limits.Timeout, fmt.Sprintf("timeout %d is not a time; the default of %s was used.", millis,
			limits.Timeout)
	case int64(millis) > limits.MaxTimeout.Milliseconds():
		return limits.MaxTimeout, fmt.Sprintf("timeout %d is more than the most that can be asked for; %s was used.",
			millis, limits.MaxTimeout)
	}
	return time.Duration(millis) * time.Millisecond, ""
}

// spill writes the output of a command to a file after it exceeds the memory limit.
func spill(results *resultstore.PrincipalStore) shell.Spill {
	return func() (io.WriteCloser, string, error) {
		f, err := results.Create("bash")
		if err != nil {
			return nil, "", err
		}
		return f, f.Path(), nil
	}
}

// updateCwd keeps the working directory for the next call, if commands may work there. discards says that it may exist
// only where the command ran.
func updateCwd(env *Env, r *shell.Result, started string, discards bool) string {
	root := env.Policy.Roots()[0]
	switch {
	case r.DirGone:
		env.Dir.Set(root)
		return fmt.Sprintf("The working directory no longer exists; the next command starts in %s.", root)
	case r.Dir == "":
		env.Dir.Set(started)
		return ""
	case r.Dir != started && !inside(env.Policy, r.Dir): // where it started it was allowed to
		env.Dir.Set(started)
		return fmt.Sprintf("The command ended in %s, outside the roots; the next command starts in %s again.",
			r.Dir, started)
	}
	if _, err := os.Lstat(r.Dir); discards && err != nil {
		env.Dir.Set(started)
		return fmt.Sprintf("The command ended in %s, which is dropped with the plan; the next command starts in %s again.",
			r.Dir, started)
	}
	env.Dir.Set(r.Dir)
	return ""
}

// outcomeNotes returns notes on how the command ended.
func outcomeNotes(r *shell.Result) []string {
	var all []string
	if r.Left > 0 {
		all = append(all, fmt.Sprintf("%s still ran in the background when the command returned and %s ended: "+
			"run_in_background keeps a command running.", count(r.Left, "process"), plural(r.Left, "was", "were")))
	}
	if r.SpillErr != nil {
		why := r.SpillErr.Error() // the error says what was not saved
		all = append(all, strings.ToUpper(why[:1])+why[1:]+".")
	}
	if r.Spilled != "" {
		part := "The whole output"
		if r.SpillCut {
			part = "The beginning of the output"
		}
		all = append(all, fmt.Sprintf("%s (%s, %s) is in %s: %s.", part, count(int(r.Bytes), "byte"),
			count(r.Lines, "line"), r.Spilled, readMoreHint(r)))
	}
	if r.Problem != nil {
		all = append(all, fmt.Sprintf("The host met a problem: %v.", r.Problem))
	}
	return all
}

// readMoreHint says how to see the rest of a saved output. Read shows only the beginning of a long line.
func readMoreHint(r *shell.Result) string {
	if n := r.Inside(maxLineShown); n > 0 {
		return fmt.Sprintf("what is left out begins within a long line, which Bash shows, as in tail -c +%d '%s' | head "+
			"-c 20000", n+1, r.Spilled)
	}
	from := "an offset"
	if r.Cut {
		from = fmt.Sprintf("offset=%d for what is left out", r.Next())
	}
	return "Read it with " + from + ", or Grep it"
}

// bashText returns the text of a result: the exit code, the output, and the remarks.
func bashText(r *shell.Result, timeout time.Duration, remarks []string) string {
	var out strings.Builder
	switch {
	case r.TimedOut:
		fmt.Fprintf(&out, "The command was ended after its timeout of %s%s.\n", timeout, inMillis(timeout))
	case r.Unheard:
		fmt.Fprintf(&out, "The command was ended: its programs had waited %s for a person, in all.\n", execWait)
	case r.Cancelled:
		out.WriteString("The command was cancelled and ended.\n")
	case r.Signal != "":
		fmt.Fprintf(&out, "Exit code %d (ended by %s)\n", r.ExitCode, r.Signal)
	case r.ExitCode != 0:
		fmt.Fprintf(&out, "Exit code %d\n", r.ExitCode)
	}
	out.WriteString(r.Text)
	if r.Bytes == 0 && out.Len() == 0 {
		out.WriteString("(no output)\n")
	}
	if len(remarks) > 0 {
		if s := out.String(); !strings.HasSuffix(s, "\n") {
			out.WriteByte('\n')
		}
		out.WriteString("\n[" + strings.Join(remarks, " ") + "]\n")
	}
	return out.String()
}

// moreTime says how a command that has exceeded its timeout can run longer.
func moreTime(r *shell.Result, timeout time.Duration, limits ShellLimits) string {
	switch {
	case !r.TimedOut:
		return ""
	case timeout >= limits.MaxTimeout:
		return "Start it with run_in_background to let it run for longer."
	}
	return fmt.Sprintf("Allow more time with timeout (milliseconds, at most %d), or start it with run_in_background.",
		limits.MaxTimeout.Milliseconds())
}

// inMillis returns a note that timeout is in milliseconds if seconds were probably meant.
func inMillis(timeout time.Duration) string {
	if timeout >= time.Second {
		return ""
	}
	return " (timeout is in milliseconds)"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
