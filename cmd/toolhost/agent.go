package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
)

func agentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "See what agents left in worktrees of their own"}
	cmd.AddCommand(agentListCommand())
	return cmd
}

// A keptWorktree is a worktree in the output of `toolhost agent list --json`.
type keptWorktree struct {
	Name   string    `json:"name"`
	Source string    `json:"source"`
	Branch string    `json:"branch,omitempty"`
	Base   string    `json:"base,omitempty"`
	Commit string    `json:"commit,omitempty"`
	Tree   string    `json:"tree"`
	Kept   time.Time `json:"kept"`
}

func agentListCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the worktrees in which agents left something; they are kept for 30 days, their branches " +
			"longer", Args: cobra.NoArgs,
		Example: "  toolhost agent list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := flags.ownState()
			if err != nil {
				return err
			}
			room, list := builtin.Worktrees(state), []keptWorktree{}
			for _, m := range room.List() {
				list = append(list, keptWorktree{m.Name, m.Source, m.Branch, m.Base, m.Commit, room.Tree(m), m.Kept})
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			if len(list) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no agent left anything")
				return err
			}
			out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, k := range list {
				fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", k.Kept.Local().Format("2006-01-02 15:04"),
					sanitized(cmp.Or(k.Branch, k.Name)), sanitized(k.Source), sanitized(k.Tree))
			}
			return out.Flush()
		},
	}
	flags.addState(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
