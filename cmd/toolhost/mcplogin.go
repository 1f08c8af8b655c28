package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/mcpserver"
)

func mcpLoginCommand(flags *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use: "login NAME", Short: "Log in to a server at a URL, in your browser",
		Args: exactly(1, "toolhost mcp login wiki"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.withState(func(host *mcpserver.Host) error {
				err := host.Operator().Gateway().Login(cmd.Context(), args[0], func(address string) error {
					fmt.Fprintf(cmd.ErrOrStderr(), "log in at %s\n", sanitized(address))
					_ = openAddress(address) // the person has its address
					return nil
				})
				if err == nil {
					err = markRestart(host, args[0])
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "you are logged in to %s\n", sanitized(args[0]))
				return err
			})
		},
	}
}

func mcpLogoutCommand(flags *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use: "logout NAME", Short: "Forget your login to a server", Args: exactly(1, "toolhost mcp logout wiki"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.withState(func(host *mcpserver.Host) error {
				found, err := host.Operator().Gateway().Logout(args[0])
				if err == nil {
					err = markRestart(host, args[0])
				}
				if err != nil {
					return err
				}
				text := "you are logged out of %s\n"
				if !found {
					text = "you were not logged in to %s\n"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), text, sanitized(args[0]))
				return err
			})
		},
	}
}
