package main

import (
	"regexp"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// wholeID is the ID of a call in the history.
var wholeID = regexp.MustCompile(`^[a-z2-7]{12}$`)

func rewindCommand() *cobra.Command {
	var flags hostFlags
	var u undoing
	cmd := &cobra.Command{
		Use: "rewind ID|TIME [flags]", Short: "Put the workspace back to before a call, or to a time",
		Long: `Put the workspace back to what it was before a call, named by its ID in the history, or at a time. All later
changes by tools and commands are taken back: contents, modes, links and directories. The list is shown first, and
asked at a terminal. What another program has changed since is left as it is, and nothing is done while commands run
in the workspace, unless --force. What is ignored by git in whole directories, and .git itself, is not touched. A
rewind is a change too, and can be undone.`,
		Example: `  toolhost rewind 3k9x2m --dry-run
  toolhost rewind 15m
  toolhost rewind 2026-01-31T15:04 --path src --yes`,
		Args: exactly(1, "toolhost rewind 3k9x2m"), ValidArgsFunction: completeChanges(&flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if u.since = ""; !wholeID.MatchString(id) {
				if _, err := sinceTime(id); err == nil {
					u.since, id = id, ""
				}
			}
			if err := u.selected(nil); err != nil {
				return err
			}
			u.Last, u.Before = 0, id
			paths := func(state string) ([]string, error) { return builtin.UndonePaths(state, u.UndoSelection) }
			return flags.onFiles(paths, func(host *mcpserver.Host) error {
				return u.undo(cmd, host.Operator(), false)
			})
		},
	}
	u.addFlags(cmd, &flags)
	return cmd
}

func diffCommand() *cobra.Command {
	var flags hostFlags
	cmd := showCommand(&flags)
	cmd.Use, cmd.Short, cmd.Example = "diff ID", "Show what one call changed", "  toolhost diff 3k9x2m"
	cmd.Args = exactly(1, "toolhost diff 3k9x2m (toolhost history lists the IDs)")
	flags.addState(cmd.Flags())
	return cmd
}

// addFlags adds the flags that undo and rewind share.
func (u *undoing) addFlags(cmd *cobra.Command, flags *hostFlags) {
	flags.addState(cmd.Flags())
	cmd.Flags().StringVar(&u.Path, "path", "", "changes of this `FILE`, or below this directory (default: this workspace)")
	cmd.Flags().StringVar(&u.Scope, "scope", "", "changes made in this `SCOPE`, as the history names it")
	cmd.Flags().BoolVar(&u.Force, "force", false, "also where that loses later changes")
	cmd.Flags().BoolVar(&u.DryRun, "dry-run", false, "show what would become of each file, and change nothing")
	cmd.Flags().BoolVarP(&u.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&u.asJSON, "json", false, "print JSON")
}
