package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

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
				changes, err := host.Operator().Changes(filter)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), append([]builtin.Change{}, changes...))
				}
				return printChanges(cmd.OutOrStdout(), changes)
			})
		},
	}
	flags.addState(cmd.PersistentFlags())
	cmd.Flags().StringVar(&filter.Path, "path", "", "only changes of this `FILE`, or below this directory")
	cmd.Flags().StringVar(&filter.Scope, "scope", "", "only changes made in this `SCOPE`, as the list names it")
	cmd.Flags().StringVar(&since, "since", "", "only changes since this `TIME`: 2026-01-31T15:04, or 10m for the last ten minutes")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "at most so many; 0 for all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(showCommand(&flags), usageCommand(&flags))
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
					return printJSON(cmd.OutOrStdout(), append([]builtin.Holding{}, all...))
				}
				out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(out, "CALLER\tCHANGES\tBYTES\tAT MOST")
				for _, h := range all {
					fmt.Fprintf(out, "%s\t%d\t%d\t%d\n", mcpserver.Sanitize(cmp.Or(h.Principal, "unknown")), h.Changes, h.Bytes, h.Limit)
				}
				return out.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// nothing names no files, so that the rules of no other workspace are asked.
func nothing(string) ([]string, error) { return nil, nil }

func showCommand(flags *hostFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show the diff of one change", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			paths := func(state string) ([]string, error) {
				return builtin.ChangedPaths(state, builtin.ChangeFilter{}, args[0])
			}
			return flags.onFiles(paths, func(host *mcpserver.Host) error {
				change, diff, err := host.Operator().ShowChange(args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), struct {
						builtin.Change
						Diff string
					}{change, diff})
				}
				if err := printChanges(cmd.OutOrStdout(), []builtin.Change{change}); err != nil {
					return err
				}
				if f, ok := cmd.OutOrStdout().(*os.File); ok && isTerminal(f) {
					diff = mcpserver.Sanitize(diff) // a program gets it as it is
				}
				_, err = io.WriteString(cmd.OutOrStdout(), "\n"+ended(diff))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func undoCommand() *cobra.Command {
	var flags hostFlags
	var sel builtin.UndoSelection
	var since string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "undo [ID]... [flags]", Short: "Undo changes of files; without an argument the last one",
		Long: `Undo changes of files; without an argument the last one. A file that has changed since is left as it is, unless
--force. An undo is a change too, and can be undone. Files that no tool changed are never touched. The exit status
is 1 when a file was left as it is.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if sel.Since, err = sinceTime(since); err != nil {
				return err
			}
			if sel.Path, err = absolute(sel.Path); err != nil {
				return err
			}
			sel.IDs = args
			if len(args) == 0 && since == "" && sel.Scope == "" && sel.Path == "" {
				sel.Last = 1
			}
			paths := func(state string) ([]string, error) { return builtin.UndonePaths(state, sel) }
			return flags.onFiles(paths, func(host *mcpserver.Host) error {
				done, err := host.Operator().Undo(cmd.Context(), sel)
				if err != nil {
					return err
				}
				return printUndone(cmd.OutOrStdout(), done, asJSON)
			})
		},
	}
	flags.addState(cmd.Flags())
	cmd.Flags().StringVar(&sel.Path, "path", "", "changes of this `FILE`, or below this directory")
	cmd.Flags().StringVar(&sel.Scope, "scope", "", "changes made in this `SCOPE`, as the history names it")
	cmd.Flags().StringVar(&since, "since", "", "all changes since this `TIME`: 2026-01-31T15:04, or 10m for the last ten minutes")
	cmd.Flags().BoolVar(&sel.Force, "force", false, "also where that loses later changes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// sinceTime reads a time, or how long ago it was. Empty is the zero time.
func sinceTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{fmt.Errorf("--since %s: neither a time such as 2026-01-31T15:04 nor a duration such as 10m", text)}
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func printChanges(w io.Writer, changes []builtin.Change) error {
	for _, c := range changes {
		what := "changed"
		switch {
		case c.Created:
			what = "created"
		case c.Deleted:
			what = "removed"
		}
		state := ""
		switch {
		case c.UndoneBy != "":
			state = "  (undone)"
		case c.State != "done":
			state = "  (" + string(c.State) + ")"
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %-12s %s %s  %s%s\n",
			c.ID, c.Time.Local().Format("2006-01-02 15:04:05"), sanitized(c.Tool), what, sanitized(c.Path), sanitized(c.Scope), state); err != nil {
			return err
		}
	}
	return nil
}

// An undoneFile is what `toolhost undo --json` prints of each file.
type undoneFile struct {
	Path    string `json:"path"`
	Done    bool   `json:"done"`
	Removed bool   `json:"removed,omitempty"`
	Error   string `json:"error,omitempty"`
	// Forced says that --force would restore it all the same.
	Forced bool `json:"force_would,omitempty"`
}

func printUndone(w io.Writer, all []builtin.Undone, asJSON bool) error {
	left := false
	files := []undoneFile{}
	for _, u := range all {
		file := undoneFile{Path: u.Path, Done: u.Err == nil, Removed: u.Removed && u.Err == nil, Forced: u.Forced}
		if u.Err != nil {
			file.Error, left = u.Err.Error(), true
		}
		files = append(files, file)
	}
	var err error
	if asJSON {
		err = printJSON(w, files)
	} else {
		err = printFiles(w, files)
	}
	if err == nil && left {
		err = errReported
	}
	return err
}

func printFiles(w io.Writer, files []undoneFile) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(w, "there is nothing to undo")
		return err
	}
	for _, f := range files {
		line := "restored " + sanitized(f.Path)
		switch {
		case !f.Done:
			line = fmt.Sprintf("left %s: %s", sanitized(f.Path), sanitized(f.Error))
		case f.Removed:
			line = "removed " + sanitized(f.Path)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
