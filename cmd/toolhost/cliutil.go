package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/mcpserver"
)

// Shared code of all commands: exit codes, usage errors, JSON, colors.

// Exit codes. They are listed by toolhost help exit-codes.
const (
	exitOK = 0
	// exitFailed means that the tool reports an error, a call was refused, a check failed, or the command failed.
	exitFailed = 1
	exitUsage  = 2 // the command line cannot be understood, or a settings file cannot be parsed
	exitCannot = 3 // the client cannot be verified
	// exitConflicts means that toolhost try left conflicts when it applied the changes.
	exitConflicts = 4
)

// errReported is an error that was already printed.
var errReported = errors.New("reported")

// errUnparsed makes the exit code 2.
var errUnparsed = errors.New("a settings file cannot be parsed, and every call is refused until it is corrected")

// A usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	var address listen.UsageError
	var client exitStatus
	switch {
	case errors.As(err, &client):
		return int(client)
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &address), errors.Is(err, errUnparsed):
		return exitUsage
	case errors.Is(err, clients.ErrNoBaseURL):
		return exitCannot
	}
	return exitFailed
}

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use: "exit-codes", Short: "What the exit codes mean",
		Long: `Exit codes:

  0  it was done: the call ran, would run, or nothing is wrong
  1  it was not: the tool reports an error (call), the call was refused (call) or would not run unasked (check),
     a file was left as it is (undo), a line fails (doctor), or the command could not do its work
  2  the command line cannot be understood, or a settings file cannot be parsed (rules)
  3  the client takes no address of a model (verify)
  4  the changes were applied, but for conflicts that are left to you (try)

A server (stdio, http) ends with 0 when its client is gone or it is told to end by SIGINT or SIGTERM.
`,
	}
}

// tellUsage turns command-line errors into usage errors that point to the help.
func tellUsage(root *cobra.Command) {
	wrap := func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
			err = fmt.Errorf("%w%s", err, didYouMean("--"+unknown.GetSpecifiedName(), names))
		}
		return usageError{fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())}
	}
	root.SetFlagErrorFunc(wrap)
	noCommand := func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("there is no command %q",
			strings.TrimPrefix(cmd.CommandPath()+" "+args[0], root.Name()+" "))
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			text += "; did you mean " + strings.Join(like, " or ") + "?"
		} else if cmd == root && isDirectory(args[0]) {
			text += "; to serve that directory to a client: toolhost stdio " + shellQuote(args[0])
		}
		return errors.New(text)
	}
	helpOnlyOf(root, noCommand)
	root.Args, root.RunE, root.SuggestionsMinimumDistance = noCommand, welcome, 2
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Args, cmd.SuggestionsMinimumDistance = noCommand, 2
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		if check := cmd.Args; check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if err := check(cmd, args); err != nil {
					return wrap(cmd, err)
				}
				return nil
			}
		}
		for _, below := range cmd.Commands() {
			each(below)
		}
	}
	each(root)
}

// refuseEmpty refuses a flag or an argument that is present but empty, as in a script with an unset variable.
// Treating it as absent would serve another directory than intended, accept another token, or lose a requested
// record.
func refuseEmpty(cmd *cobra.Command, args []string) error {
	if err := refuseInCall(cmd); err != nil {
		return err
	}
	if strings.HasPrefix(cmd.Name(), "__") { // completion commands, which pass the empty word to complete
		return nil
	}
	var empty []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if slices.Contains(values, "") && f.Name != prefixFlag {
			empty = append(empty, "--"+f.Name)
		}
	})
	switch {
	case len(empty) > 0:
		return usageError{fmt.Errorf("%s: the value is empty: give one, or leave the option out",
			strings.Join(empty, ", "))}
	case slices.Contains(args, ""):
		return usageError{errors.New("an argument is empty: leave it out, or is a variable not set?")}
	}
	return nil
}

// helpOnlyOf makes help about an unknown command an error. cobra would show the help of the program and exit 0.
func helpOnlyOf(root *cobra.Command, noCommand cobra.PositionalArgs) {
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil {
			return err
		}
		return noCommand(about, rest)
	}
}

// atLeast requires n or more arguments. Its error shows an example.
func atLeast(n int, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		words := strings.Fields(strings.Replace(cmd.Use, " [flags]", "", 1))
		return fmt.Errorf("%s takes %s, such as: %s", cmd.Name(), strings.Join(words[1:1+n], " "), example)
	}
}

// exactly requires n arguments. Its error shows an example.
func exactly(n int, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%s takes %d argument, got %d: quote arguments that contain spaces, such as: %s",
				cmd.Name(), n, len(args), example)
		}
		return atLeast(n, example)(cmd, args)
	}
}

// didYouMean suggests the known name closest to name, if any is close.
func didYouMean(name string, known []string) string {
	best, distance := "", 1+len(name)/3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k)); d <= distance &&
			(best == "" || d < distance) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// completeFlag proposes the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, values func() []string) {
	// Fails only if it is registered twice.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
}

// printJSON prints a value as JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// would begins what a command has done, or in a dry run would do.
func would(dryRun bool) string {
	if dryRun {
		return "would be "
	}
	return ""
}

// sanitized returns a text of other programs, such as a path or a rule of a repository, as one line for a terminal.
// The line has no control characters, and cannot be taken for a line of this program.
func sanitized(text string) string {
	return strings.NewReplacer("\n", "␊", "\t", "␉").Replace(mcpserver.Sanitize(text))
}

// shellQuote quotes a path as a shell argument.
func shellQuote(path string) string {
	return "'" + strings.ReplaceAll(sanitized(path), "'", `'\''`) + "'"
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{
					"version": versionString(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "toolhost", versionString())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A colour is a terminal escape sequence.
type colour string

// The colours that are used.
const (
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	red    colour = "\x1b[31m"
	faint  colour = "\x1b[2m"
	plain  colour = "\x1b[0m"
	// ordinary is as long as the other sequences, so that columns stay aligned.
	ordinary colour = "\x1b[39m"
)

// actionColours are the colours of verdicts and rules.
var actionColours = map[string]colour{"allow": green, "ask": yellow, "deny": red}

// useColor reports whether colours may be written to w: w is a terminal that supports them, and NO_COLOR is not set
// (https://no-color.org).
func useColor(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// coloured returns text in a colour if w supports colours.
func coloured(w io.Writer, c colour, text string) string {
	if text == "" || !useColor(w) {
		return text
	}
	return string(c) + text + string(plain)
}

// shownDiff returns a diff for w: coloured and without control characters for a terminal, unchanged for a program.
func shownDiff(w io.Writer, diff string) string {
	if f, ok := w.(*os.File); !ok || !isTerminal(f) {
		return diff
	}
	lines := strings.SplitAfter(mcpserver.Sanitize(diff), "\n")
	for i, line := range lines {
		text, end, _ := strings.Cut(line, "\n")
		switch {
		case strings.HasPrefix(line, "+"):
			text = coloured(w, green, text)
		case strings.HasPrefix(line, "-"):
			text = coloured(w, red, text)
		case strings.HasPrefix(line, "@@"):
			text = coloured(w, faint, text)
		}
		if lines[i] = text + end; strings.HasSuffix(line, "\n") {
			lines[i] += "\n"
		}
	}
	return strings.Join(lines, "")
}
