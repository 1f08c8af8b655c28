package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

// The outcomes for the changes.
const (
	applyThem   = "apply"
	keepThem    = "keep"
	discardThem = "discard"
)

// trying is the state of one try command.
type trying struct {
	run      *cobra.Command
	state    hostFlags
	fate     string // decided in advance, or ""
	worktree *builtin.Worktree
	client   string   // the command line of the client, as the history shows it
	closed   []string // paths that rules hide from commands in the user's work tree
	status   error    // the exit status of the client
}

func tryCommand() *cobra.Command {
	t := &trying{run: runCommand()}
	var apply, discard bool
	cmd := &cobra.Command{
		Use: "try [flags] -- CLIENT [ARG]...", Short: "Let an agent work on a copy of this repository, and look at what it " +
			"changed",
		Long: `Run a client as toolhost run does, on a copy of this repository: a worktree on a branch of its own, which
begins with your changes that are not committed. Where there is no repository, or no git, the files of the directory
are copied. At the end the diff is shown, and you apply the changes to your work tree, keep them as a branch, or
discard them. Nothing of your work tree changes before.

Applying merges with what you have changed meanwhile, leaves conflicts to you, and can be taken back: toolhost undo.
In a copy without git, a file that you have changed too is a conflict. Without a terminal the diff is printed and the
branch is kept. The exit status is that of the client, or 4 where applying left conflicts.`,
		Example: "  toolhost try -- claude\n  toolhost try --apply -- sh -c 'gofmt -w .'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("try takes a client, such as: toolhost try -- claude")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case apply && discard:
				return usageError{errors.New("--apply and --discard exclude each other: give one of them")}
			case builtin.InCall():
				return errors.New("toolhost try cannot be nested: this process is in a sandbox of toolhost already")
			case apply:
				t.fate = applyThem
			case discard:
				t.fate = discardThem
			}
			return t.try(cmd, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&apply, "apply", false, "apply the changes at the end, without asking")
	cmd.Flags().BoolVar(&discard, "discard", false, "discard the changes at the end, without asking")
	t.run.Flags().VisitAll(func(f *pflag.Flag) {
		// These select the worktree, and name this process.
		if f.Name != "root" && f.Name != "owned" && f.Name != "copy-of" {
			cmd.Flags().AddFlag(f)
		}
	})
	return cmd
}

// try makes the worktree, runs the client in it, and ends it.
func (t *trying) try(cmd *cobra.Command, args []string) (err error) {
	t.state.stateDir = cmd.Flags().Lookup("state-dir").Value.String()
	// What they hide is not copied.
	for name, list := range map[string]*[]string{"settings": &t.state.settings, "deny": &t.state.deny} {
		*list = cmd.Flags().Lookup(name).Value.(pflag.SliceValue).GetSlice()
	}
	state, err := t.state.stateDirectory()
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(cmd.Context()) // the changes are settled after an interrupt too
	room := builtin.Worktrees(state)
	if err := room.Sweep(ctx, time.Now()); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "toolhost try:", sanitized(err.Error()))
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir() // without one no directory is taken for it
	err = t.state.with([]string{workspaceOf(filepath.Join(here, "file"), home)}, func(host *mcpserver.Host) error {
		return host.RunExclusive(ctx, "try", func(env *builtin.Env) (err error) {
			denied := env.Policy.Commands().Denied // such files are not copied
			if t.worktree, err = room.Try(cmd.Context(), here, denied); err == nil {
				t.closed = closedIn(t.worktree, home, env.Policy)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.worktree.Close()) }()
	if t.worktree.Common == "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "toolhost try: the client works on a copy of %s: there is no repository, or no git\n",
			sanitized(t.worktree.Source))
	}
	t.client = strings.Join(args, " ")
	t.status = t.runClient(cmd, args)
	if tree, err := filepath.EvalSymlinks(t.worktree.Tree()); err == nil {
		if err := forgetLayers(state, []string{tree}); err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "toolhost try:", sanitized(err.Error()))
		}
	}
	if _, err := t.worktree.End(ctx); err != nil {
		return err
	}
	if !t.worktree.Changed() {
		fmt.Fprintln(cmd.ErrOrStderr(), "toolhost try: nothing was changed")
		return t.status
	}
	return t.settle(ctx, cmd)
}

// closedIn returns the paths in the user's work tree that rules hide from commands. In the client's host, rules with
// relative names apply to the worktree, and the user's work tree lies outside of all roots, where commands may read.
func closedIn(w *builtin.Worktree, home string, policy *guard.Policy) (closed []string) {
	commands := policy.Commands()
	// What cannot be listed cannot be read either.
	_ = filepath.WalkDir(w.Source, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == w.Source || !commands.Denied(path, d.IsDir()):
			return nil
		case isBelow(w.Tree(), path): // the host's state is hidden from the client anyway
			return fs.SkipDir
		// The secrets of a home directory are, too.
		case isBelow(home, w.Source) && commands.ReadRule(path) == "" && commands.ReadRule(filepath.Join(path, "x")) == "":
		default:
			closed = append(closed, path)
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return closed
}

// oddInRule matches characters that may have a special meaning in a rule on files.
var oddInRule = regexp.MustCompile(`[^\pL\pN._/@+=,~-]`)

// settings returns the settings of the client's host. They hide the closed paths from commands and from file tools.
func (t *trying) settings() ([]byte, error) {
	rules := []string{}
	for i, path := range t.closed {
		// A pattern cannot be hidden from commands: hide its directory.
		for strings.ContainsAny(path, `*?[\`) || strings.TrimSpace(path) != path {
			if path = filepath.Dir(path); len(path) <= len(t.worktree.Source) {
				return nil, fmt.Errorf("%s cannot be kept from the client, as the rules demand: its name has a character of "+
					"patterns; rename the directory", t.closed[i])
			}
		}
		t.closed[i] = path
		rules = append(rules, "Read(/"+oddInRule.ReplaceAllString(path, "?")+")")
	}
	return json.Marshal(map[string]any{
		"history": map[string]any{"commands": "off"}, "permissions": map[string]any{"deny": rules},
		"sandbox": map[string]any{"filesystem": map[string]any{"denyRead": t.closed}},
	})
}

// gitPlaces are the variables that name a repository, as git sets them for hooks. The client must use its own
// repository.
var gitPlaces = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"}

// withoutGitPlaces returns an environment without gitPlaces.
func withoutGitPlaces(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(gitPlaces, name)
	})
}

// runClient runs toolhost run in the worktree, as a process of its own that has the terminal to itself.
func (t *trying) runClient(cmd *cobra.Command, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	settings := filepath.Join(filepath.Dir(t.worktree.Tree()), "settings.json")
	raw, err := t.settings()
	if err == nil {
		err = os.WriteFile(settings, raw, 0o600)
	}
	if err != nil {
		return err
	}
	flags := []string{"run", "--root=" + t.worktree.Tree(), "--settings=" + settings, "--owned", "--copy-of=" +
		t.worktree.Source}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if t.run.Flags().Lookup(f.Name) == nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			flags = append(flags, "--"+f.Name+"="+v)
		}
	})
	child := exec.Command(self, append(append(flags, "--"), args...)...)
	child.Env = withoutGitPlaces(os.Environ())
	child.Dir, child.Stdin, child.Stdout, child.Stderr = t.worktree.Dir(), os.Stdin, os.Stdout, os.Stderr
	signal.Reset(os.Interrupt, syscall.SIGTERM) // otherwise main would end this process at the second signal
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM || s == syscall.SIGHUP { // a terminal sends the other signals to both processes
				_ = child.Process.Signal(s)
			}
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitStatus(exit.ExitCode())
			}
			return err
		}
	}
}

// shownIgnored is the maximum number of ignored files that are listed.
const shownIgnored = 5

// settle shows the changes, asks for a decision and carries it out.
func (t *trying) settle(ctx context.Context, cmd *cobra.Command) error {
	var diff strings.Builder
	if err := t.worktree.Patch(ctx, &diff); err != nil {
		return err
	}
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if _, err := io.WriteString(out, shownDiff(out, diff.String())); err != nil {
		fmt.Fprintln(errs, "toolhost try:", err) // the changes are kept nevertheless
	}
	for _, note := range t.worktree.Left.Notes {
		fmt.Fprintln(errs, "toolhost try:", sanitized(note))
	}
	if made := t.worktree.Left.Ignored; len(made) > 0 {
		fmt.Fprintf(errs, "toolhost try: made, but ignored by git, and so in no diff or branch: %s: %s\n",
			files(len(made)), sanitized(strings.Join(made[:min(len(made), shownIgnored)], ", ")))
	}
	fate := t.fate
	switch {
	case fate != "":
	case isTerminal(os.Stdin):
		var err error
		if fate, err = t.ask(ctx, errs, diff.String()); err != nil { // without a console
			fmt.Fprintln(errs, "toolhost try:", sanitized(err.Error()))
			fate = askFate(errs, os.Stdin)
		}
	default:
		fate = keepThem
	}
	switch fate {
	case applyThem:
		return t.apply(ctx, errs)
	case discardThem:
		if err := t.worktree.Discard(ctx); err != nil {
			return err
		}
		fmt.Fprintln(errs, "toolhost try: the changes were discarded")
		return t.status
	}
	return errors.Join(t.keep(ctx, errs), t.status)
}

// askFate asks whether to apply, keep or discard the changes. Without an answer they are kept.
func askFate(w io.Writer, in io.Reader) string {
	lines := bufio.NewScanner(in)
	for {
		fmt.Fprint(w, "[a]pply to your work tree, [k]eep as a branch, [d]iscard? (or answer at the console) ")
		if !lines.Scan() {
			fmt.Fprintln(w)
			return keepThem
		}
		answer := strings.ToLower(strings.TrimSpace(lines.Text()))
		for _, fate := range []string{applyThem, keepThem, discardThem} {
			if answer != "" && strings.HasPrefix(fate, answer) {
				return fate
			}
		}
	}
}

// keep keeps the changes as a branch, and those that are on no branch as a directory.
func (t *trying) keep(ctx context.Context, w io.Writer) error {
	left := t.worktree.Left
	if left.Branch == "" || len(left.Notes)+len(left.Ignored) > 0 {
		fmt.Fprintf(w, "toolhost try: the changes are kept for 30 days in %s\n", sanitized(t.worktree.Tree()))
	} else if err := t.worktree.Remove(ctx); err != nil {
		return err
	}
	if left.Branch != "" {
		fmt.Fprintf(w, "toolhost try: the changes are kept on %s\n  git diff %.12s...%s\n  git merge %s\n",
			strings.Join(append([]string{left.Branch}, left.Others...),
				", "), t.worktree.Base, left.Branch, left.Branch)
	}
	return nil
}

// end removes the worktree, unless something in it was not committed. It reports other branches, which were not
// applied.
func (t *trying) end(ctx context.Context, w io.Writer) error {
	left := &t.worktree.Left
	if len(left.Notes)+len(left.Ignored) > 0 {
		return t.keep(ctx, w)
	}
	if len(left.Others) > 0 {
		fmt.Fprintf(w, "toolhost try: not applied, and kept: %s\n", strings.Join(left.Others, ", "))
		left.Others = nil
	}
	return t.worktree.Discard(ctx)
}

// apply merges the changes into the user's work tree. What could not be applied stays on the branch.
func (t *trying) apply(ctx context.Context, w io.Writer) error {
	refused := false
	err := t.state.with([]string{t.worktree.Source}, func(host *mcpserver.Host) error {
		return host.RunExclusive(ctx, "try", func(env *builtin.Env) error {
			done, err := builtin.ApplyWorktree(ctx, env, t.worktree, t.client)
			for _, name := range done.Conflicts {
				fmt.Fprintf(w, "toolhost try: conflict in %s\n", sanitized(name))
			}
			for _, why := range done.Refused {
				fmt.Fprintf(w, "toolhost try: not applied: %s\n", sanitized(why))
			}
			for _, note := range done.Notes {
				fmt.Fprintf(w, "toolhost try: %s\n", sanitized(note))
			}
			if err == nil {
				fmt.Fprintf(w, "toolhost try: %s changed in %s; toolhost undo takes it back\n", files(done.Changed),
					sanitized(t.worktree.Source))
			}
			refused = len(done.Conflicts)+len(done.Refused) > 0
			return err
		})
	})
	switch {
	case err != nil:
		return errors.Join(err, t.keep(ctx, w))
	case refused:
		return errors.Join(t.keep(ctx, w), exitStatus(exitConflicts))
	}
	return errors.Join(t.end(ctx, w), t.status)
}

// files returns a number of files in words.
func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
