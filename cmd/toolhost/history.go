package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

func historyCommand() *cobra.Command {
	var flags hostFlags
	var filter builtin.ChangeFilter
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "history [flags]", Short: "List what the tools changed, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if filter.Since, err = sinceTime(since); err != nil {
				return err
			}
			if filter.Path, err = absolute(filter.Path); err != nil {
				return err
			}
			paths := func(state string) ([]string, error) { return builtin.ChangedPaths(state, filter, "") }
			return flags.onFiles(paths, func(host *mcpserver.Host) error {
				calls, err := host.Operator().Calls(filter)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), shownCalls(calls))
				}
				if len(calls) == 0 {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), nothingChanged(filter))
					return err
				}
				return printCalls(cmd.OutOrStdout(), calls)
			})
		},
	}
	flags.addState(cmd.PersistentFlags())
	cmd.Flags().StringVar(&filter.Path, "path", "", "only changes of this `FILE`, or below this directory")
	cmd.Flags().StringVar(&filter.Path, "root", "", "only changes in this `DIR`; the same as --path")
	cmd.MarkFlagsMutuallyExclusive("path", "root")
	cmd.Flags().StringVar(&filter.Scope, "scope", "", "only changes made in this `SCOPE`, as the list names it")
	cmd.Flags().StringVar(&since, "since", "", "only changes since this `TIME`: 2026-01-31T15:04, or how long ago: "+
		"10m, 30d")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "at most so many; 0 for all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(showCommand(&flags), usageCommand(&flags), purgeCommand(&flags))
	return cmd
}

// nothingChanged says that the filter finds no change.
func nothingChanged(filter builtin.ChangeFilter) string {
	if filter.Path == "" && filter.Scope == "" && filter.Since.IsZero() {
		return "no change is recorded yet: what tools and commands change in your files is listed here"
	}
	return "no change is recorded that --path, --root, --scope and --since select"
}

func purgeCommand(flags *hostFlags) *cobra.Command {
	var older duration
	var yes bool
	cmd := &cobra.Command{
		Use: "purge", Short: "Forget changes, with what is kept to undo them", Args: cobra.NoArgs,
		Example: "  toolhost history purge --older-than 7d",
		RunE: func(cmd *cobra.Command, _ []string) error {
			before := time.Now().Add(-time.Duration(older))
			if !yes {
				if err := confirmed(cmd, "Forget all changes before "+before.Format(time.DateTime)+
					"? They cannot be undone then."); err != nil {
					return err
				}
			}
			state, err := flags.ownState()
			if err != nil {
				return err
			}
			calls, err := builtin.PurgeHistory(state, before)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "forgot %d calls\n", calls)
			return err
		},
	}
	cmd.Flags().Var(&older, "older-than", "only changes that are older than this, such as 12h or 30d (default: all)")
	cmd.Flags().Lookup("older-than").DefValue = "" // or the help would tell of another default, 0s
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func usageCommand(flags *hostFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "usage", Short: "Show whose changes take how much of the disk", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.onFiles(nothing, func(host *mcpserver.Host) error {
				all, err := host.Operator().Holdings()
				if err != nil {
					return err
				}
				if asJSON {
					list := []holding{}
					for _, h := range all {
						list = append(list, holding{h.Principal, h.Changes, h.Bytes, h.Limit, h.Damaged, h.Aside})
					}
					return printJSON(cmd.OutOrStdout(), list)
				}
				out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(out, "CALLER\tCHANGES\tBYTES\tAT MOST")
				for _, h := range all {
					fmt.Fprintf(out, "%s\t%d\t%d\t%d\n", mcpserver.Sanitize(cmp.Or(h.Principal, "unknown")), h.Changes,
						h.Bytes, h.Limit)
				}
				return out.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nothing names no files, so no rules of another workspace are applied.
func nothing(string) ([]string, error) { return nil, nil }

func showCommand(flags *hostFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show the diff of one change", Args: exactly(1, "toolhost history show 3k9x2m"),
		Example: "  toolhost history show 3k9x2m", ValidArgsFunction: completeChanges(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths := func(state string) ([]string, error) {
				return builtin.ChangedPaths(state, builtin.ChangeFilter{}, args[0])
			}
			return flags.onFiles(paths, func(host *mcpserver.Host) error {
				change, diff, err := host.Operator().ShowChange(args[0])
				if err != nil {
					return err
				}
				all, err := host.Operator().Calls(builtin.ChangeFilter{Since: change.Time})
				if err != nil {
					return err
				}
				all = slices.DeleteFunc(all, func(c builtin.ChangedCall) bool { return c.ID != change.ID })
				if asJSON {
					return printJSON(cmd.OutOrStdout(), struct {
						changedCall
						Diff string `json:"diff"`
					}{shownCalls(all)[0], diff})
				}
				if err := printCalls(cmd.OutOrStdout(), all); err != nil {
					return err
				}
				_, err = io.WriteString(cmd.OutOrStdout(), "\n"+ended(shownDiff(cmd.OutOrStdout(), diff)))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// sinceTime parses a time, or an age such as 2h. Empty text is the zero time.
func sinceTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := parseDuration(text); err == nil {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{fmt.Errorf("--since %s: neither a time such as 2026-01-31T15:04 nor a duration such "+
		"as 10m or 30d", text)}
}

// parseDuration parses a duration, which may be in days or weeks: 30d, 2w.
func parseDuration(text string) (time.Duration, error) {
	for suffix, hours := range map[string]float64{"d": 24, "w": 7 * 24} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || n < 0 || n*hours > float64(1<<63-1)/float64(time.Hour) {
				return 0, fmt.Errorf("%q is not a duration such as 10m, 12h or 30d", text)
			}
			return time.Duration(n * hours * float64(time.Hour)), nil
		}
	}
	return time.ParseDuration(text)
}

// A duration is a flag that [parseDuration] reads.
type duration time.Duration

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	parsed, err := parseDuration(text)
	*d = duration(parsed)
	return err
}

// String implements pflag.Value.
func (d *duration) String() string { return time.Duration(*d).String() }

// Type implements pflag.Value.
func (*duration) Type() string { return "DURATION" }

// A changedCall is a call that changed files in the output of `toolhost history --json`.
type changedCall struct {
	ID        string        `json:"id"`
	Time      time.Time     `json:"time"`
	Principal string        `json:"principal"`
	Scope     string        `json:"scope"`
	Tool      string        `json:"tool"`
	Command   string        `json:"command"`
	Files     []changedFile `json:"files"`
	// Ignored is how many changed files are not in the history, such as those that .gitignore names.
	Ignored int `json:"ignored"`
	// Notes say what the history lacks. HeadMoved says that git had another commit checked out afterwards.
	Notes     []string `json:"notes,omitempty"`
	HeadMoved bool     `json:"head_moved,omitempty"`
	State     string   `json:"state"`
	UndoOf    []string `json:"undo_of,omitempty"`
	UndoneBy  string   `json:"undone_by,omitempty"` // set once every change is undone
}

// A changedFile is one file of a [changedCall].
type changedFile struct {
	Path    string `json:"path"`
	RawPath []byte `json:"raw_path,omitempty"` // in base64, if Path is not valid UTF-8
	Change  string `json:"change"`             // created, changed or removed
	// Before and After are the contents; they are left out if there was no file.
	Before blob `json:"before,omitzero"`
	After  blob `json:"after,omitzero"`
	// Lost is the reason why the former content is missing.
	Lost     string `json:"lost,omitempty"`
	UndoneBy string `json:"undone_by,omitempty"`
}

// rawPath returns a path that is not valid UTF-8, and nil for all others.
func rawPath(path string) []byte {
	if utf8.ValidString(path) {
		return nil
	}
	return []byte(path)
}

// A blob is a content of a file.
type blob struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// A holding is a caller in the output of `toolhost history usage --json`.
type holding struct {
	Principal string `json:"principal"`
	Changes   int    `json:"changes"`
	Bytes     int64  `json:"bytes"`
	Limit     int64  `json:"limit"`
	Damaged   bool   `json:"damaged,omitempty"`
	SetAside  string `json:"set_aside,omitempty"` // the directory of what was damaged
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// shownCalls returns calls as they are printed in JSON.
func shownCalls(all []builtin.ChangedCall) []changedCall {
	calls := []changedCall{}
	for _, c := range all {
		call := changedCall{
			ID: c.ID, Time: c.Time, Principal: c.Principal, Scope: c.Scope, Tool: c.Tool, State: string(c.State),
			Command: c.Command, Ignored: c.Ignored, Notes: c.Notes, HeadMoved: c.HeadMoved, UndoOf: c.UndoOf,
			UndoneBy: c.UndoneBy,
		}
		for _, f := range c.Files {
			call.Files = append(call.Files, changedFile{f.Path, rawPath(f.Path), f.Word(),
				blob{f.Before.Sum, f.Before.Size}, blob{f.After.Sum, f.After.Size}, f.Lost, f.UndoneBy})
		}
		calls = append(calls, call)
	}
	return calls
}

// printCalls prints a line for each call: the file that it changed, or how many and by which command.
func printCalls(w io.Writer, calls []builtin.ChangedCall) error {
	for _, c := range calls {
		what := c.Files[0].Word() + " " + sanitized(c.Files[0].Path)
		if c.Command != "" || len(c.Files) > 1 {
			first, _, _ := strings.Cut(c.Command, "\n")
			what = strings.TrimPrefix(sanitized(first)+" · "+c.Counts(), " · ")
			if c.Ignored > 0 {
				what += fmt.Sprintf(", %d ignored and not kept", c.Ignored)
			}
		}
		state := ""
		switch {
		case c.UndoneBy != "":
			state = "  (undone)"
		case c.State != "done":
			state = "  (" + string(c.State) + ")"
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %-12s %s  %s%s\n",
			c.ID, c.Time.Local().Format("2006-01-02 15:04:05"), sanitized(c.Tool), what, sanitized(c.Scope), state); err != nil {
			return err
		}
	}
	return nil
}

// completeChanges proposes the ids of the latest changes.
func completeChanges(flags *hostFlags) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) (ids []string, _ cobra.ShellCompDirective) {
		const most = 20
		paths := func(state string) ([]string, error) {
			return builtin.ChangedPaths(state, builtin.ChangeFilter{Limit: most}, "")
		}
		_ = flags.onFiles(paths, func(host *mcpserver.Host) error {
			changes, err := host.Operator().Changes(builtin.ChangeFilter{Limit: most})
			for _, c := range changes {
				ids = append(ids, fmt.Sprintf("%s\t%s %s", c.ID, c.Tool, sanitized(c.Path)))
			}
			return err
		})
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
