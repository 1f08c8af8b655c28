package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"toolhost/mcpserver"
)

func doctorCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor [flags] [ROOT]...", Short: "Say what this host works with, what it enforces, and what would make it better",
		Long: `Say what this host works with, what it enforces, and what would make it better: a line each for the roots, the
rules, the sandbox, the shell, the state directory, the audit log and the tools. The exit status is 1 when a line fails.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(args, func(host *mcpserver.Host) (err error) {
				findings := host.Examine(cmd.Context())
				if asJSON {
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(findings)
				} else {
					err = printFindings(cmd.OutOrStdout(), findings)
				}
				for _, f := range findings {
					if err == nil && f.Level == mcpserver.LevelFail {
						err = errReported
					}
				}
				return err
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printFindings(w io.Writer, findings []mcpserver.Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-5s %-8s %s\n", f.Level, f.About, strings.TrimSpace(f.Text)); err != nil {
			return err
		}
		if f.Remedy != "" {
			if _, err := fmt.Fprintf(w, "%14s → %s\n", "", f.Remedy); err != nil {
				return err
			}
		}
	}
	return nil
}
