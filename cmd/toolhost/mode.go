package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/mcpserver"
)

func modeCommand() *cobra.Command {
	var flags hostFlags
	cmd := &cobra.Command{
		Use: "mode plan|default SCOPE", Short: "Put a conversation into plan mode, or back into the mode of the settings",
		Long: `Put a conversation into plan mode, in which edits are refused and what commands change is dropped, or back
into the mode that the settings say. It holds at once in all hosts that run, and is kept. The conversation is named by
its SCOPE, as toolhost history and toolhost log name it.`,
		Example: "  toolhost mode plan threadId:0f1e2d3c4b5a",
		Args:    exactly(2, "toolhost mode plan threadId:0f1e2d3c4b5a"), ValidArgs: []string{"plan", "default"},
		RunE: func(cmd *cobra.Command, args []string) error {
			planning := args[0] == "plan"
			if !planning && args[0] != "default" {
				return usageError{fmt.Errorf("mode of the conversation: expected plan or default, got %q", args[0])}
			}
			return flags.onFiles(nothing, func(host *mcpserver.Host) error {
				if err := mcpserver.Modes(host).Set(args[1], planning); err != nil {
					return usageError{err}
				}
				mode := "plan"
				if !planning {
					mode = "the mode of the settings"
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", sanitized(args[1]), mode)
				return err
			})
		},
	}
	flags.addState(cmd.Flags())
	return cmd
}
