package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

func undoCommand() *cobra.Command {
	var flags hostFlags
	var u undoing
	cmd := &cobra.Command{
		Use: "undo [ID]... [flags]", Short: "Undo changes of files; without an ID the last one in this workspace",
		Long: `Undo changes of files. Without an ID it is the last one in this workspace, or those that the flags name; what
would become of each file is shown first, and asked at a terminal. A file that has changed since is left as it is,
unless --force. An undo is a change too, and can be undone. Files that no tool changed are never touched. The exit
status is 1 when a file was left as it is.`,
		Example: `  toolhost undo --dry-run
  toolhost undo 3k9x2m
  toolhost undo --since 10m --yes`,
		ValidArgsFunction: completeChanges(&flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := u.selected(args); err != nil {
				return err
			}
			paths := func(state string) ([]string, error) { return builtin.UndonePaths(state, u.UndoSelection) }
			return flags.onFiles(paths, func(host *mcpserver.Host) error { return u.undo(cmd, host.Operator(), len(args) > 0) })
		},
	}
	u.addFlags(cmd, &flags)
	cmd.Flags().StringVar(&u.since, "since", "", "all changes since this `TIME`: 2026-01-31T15:04, or how long ago: "+
		"10m, 30d")
	return cmd
}

// undoing is the state of one undo command.
type undoing struct {
	builtin.UndoSelection
	since       string
	yes, asJSON bool
}

// selected sets which changes are meant. Without IDs they are those of the workspace around the working directory.
func (u *undoing) selected(ids []string) (err error) {
	if u.Since, err = sinceTime(u.since); err != nil {
		return err
	}
	if u.IDs = ids; len(ids) == 0 && u.since == "" && u.Scope == "" && u.Path == "" {
		u.Last = 1
	}
	if u.Path != "" || len(ids) > 0 {
		u.Path, err = absolute(u.Path)
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir()
	u.Path = workspaceOf(filepath.Join(dir, "file"), home)
	if real, err := filepath.EvalSymlinks(u.Path); err == nil {
		u.Path = real // the history has paths without links
	}
	return nil
}

// undo shows what would be undone, asks, and undoes it. Changes that are named by ID are undone without a question.
func (u *undoing) undo(cmd *cobra.Command, operator mcpserver.Operator, named bool) error {
	out := cmd.OutOrStdout()
	if !named && !u.DryRun && !u.yes {
		u.DryRun = true
		plan, err := operator.Undo(cmd.Context(), u.UndoSelection)
		if err != nil {
			return err
		}
		if plan.Refused != nil {
			warn(cmd.ErrOrStderr(), plan)
			return plan.Refused
		}
		if len(plan.Files) > 0 {
			warn(cmd.ErrOrStderr(), plan)
			if err := u.print(cmd.ErrOrStderr(), plan, false); err != nil && !errors.Is(err, errReported) {
				return err
			}
			if err := confirmed(cmd, "Undo it?"); err != nil {
				return err
			}
		}
		u.DryRun = false
	}
	done, err := operator.Undo(cmd.Context(), u.UndoSelection)
	if err != nil || u.DryRun || u.yes {
		warn(cmd.ErrOrStderr(), done)
	}
	for _, note := range done.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), sanitized(note))
	}
	if err != nil {
		return err
	}
	if done.ID != "" && !u.asJSON {
		fmt.Fprintf(cmd.ErrOrStderr(), "To take this back: toolhost undo %s\n", done.ID)
	}
	return u.print(out, done, u.asJSON)
}

// warn lists the commands that still run, and says where git has another commit checked out since, which an undo does
// not change.
func warn(w io.Writer, r builtin.UndoResult) {
	for _, c := range r.Running {
		fmt.Fprintf(w, "Still running since %s, in process %d: %s\n", c.Begun.Local().Format(time.DateTime), c.PID,
			sanitized(c.Command))
	}
	for _, id := range r.HeadMoved {
		fmt.Fprintf(w, "Git has another commit checked out since %s: its work tree will show the reversed changes.\n",
			id)
	}
}

// confirmed asks a person at the terminal.
func confirmed(cmd *cobra.Command, question string) error {
	if !isTerminal(os.Stdin) {
		text := "nothing is done without an answer, and standard input is not a terminal: add --yes"
		if cmd.Flags().Lookup("dry-run") != nil {
			text += ", or --dry-run to see what it would do"
		}
		return usageError{errors.New(text)}
	}
	fmt.Fprint(cmd.ErrOrStderr(), question+" [y/N] ")
	var answer string
	if _, err := fmt.Fscanln(cmd.InOrStdin(), &answer); err != nil || answer != "y" && answer != "yes" {
		return errors.New("nothing was done")
	}
	return nil
}

// An undoneFile is a file in the output of `toolhost undo --json`.
type undoneFile struct {
	Path    string `json:"path"`
	RawPath []byte `json:"raw_path,omitempty"` // see changedFile
	Done    bool   `json:"done"`
	Removed bool   `json:"removed,omitempty"`
	Already bool   `json:"already,omitempty"` // the path was so: nothing was done there
	Error   string `json:"error,omitempty"`
	// Gone says why no undo restores the file.
	Gone string `json:"gone,omitempty"`
	// Forced says that --force would restore it.
	Forced bool `json:"force_would,omitempty"`
	// SetID says that the file had the set-user-ID or set-group-ID bit, which is not restored.
	SetID bool `json:"without_set_id,omitempty"`
}

// print reports the result for each file, or in a dry run the expected result.
func (u *undoing) print(w io.Writer, result builtin.UndoResult, asJSON bool) error {
	left := false
	files := []undoneFile{}
	for _, f := range result.Files {
		file := undoneFile{
			Path: f.Path, RawPath: rawPath(f.Path), Done: f.Err == nil && !u.DryRun, Gone: f.Gone,
			Removed: f.Removed && f.Err == nil, Already: f.Already && f.Err == nil, Forced: f.Forced, SetID: f.SetID,
		}
		if f.Err != nil {
			file.Error, left = f.Err.Error(), true
		}
		files = append(files, file)
	}
	var err error
	if asJSON {
		err = printJSON(w, files)
	} else {
		err = printFiles(w, files, u.DryRun)
	}
	if err == nil && left {
		err = errReported
	}
	return err
}

func printFiles(w io.Writer, files []undoneFile, planned bool) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(w, "there is nothing to undo")
		return err
	}
	for _, f := range files {
		done := "restored"
		if f.Removed {
			done = "removed"
		}
		line := would(planned) + done + " " + sanitized(f.Path)
		if f.Already {
			line = "already " + done + " " + sanitized(f.Path)
		}
		if f.Gone != "" {
			line += fmt.Sprintf(" (no undo brings it back: %s)", f.Gone)
		}
		if f.SetID {
			line += " (without its set-user-ID or set-group-ID bit: set it with chmod if it is yours)"
		}
		if f.Error != "" {
			line = fmt.Sprintf("%sleft %s: %s", would(planned), sanitized(f.Path), sanitized(f.Error))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
