package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard/hostprogram"
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
					openPage(address)
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

// openPage opens a page in the browser where there is one. Its address is printed as well.
func openPage(address string) {
	for _, command := range openers(runtime.GOOS, os.Getenv("BROWSER"), address) {
		if c := hostprogram.Command(context.Background(), command[0], command[1:]...); c.Start() == nil {
			go c.Wait()
			return
		}
	}
}

// openers returns the commands that open a page, in order of preference. On Unix these are the programs of $BROWSER,
// a list separated by colons, except those that tools or commands can write.
func openers(system, browser, address string) (all [][]string) {
	switch system {
	case "darwin":
		return [][]string{{"open", address}}
	case "windows":
		return [][]string{{"rundll32", "url.dll,FileProtocolHandler", address}}
	}
	for command := range strings.SplitSeq(browser, ":") {
		if len(hostprogram.Clean([]string{"BROWSER=" + strings.ReplaceAll(command, "%s", "")})) == 0 {
			continue
		}
		words := strings.Fields(command)
		if !strings.Contains(command, "%s") {
			words = append(words, "%s")
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "%s", address)
		}
		if len(words) > 1 {
			all = append(all, words)
		}
	}
	return append(all, []string{"xdg-open", address})
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
