package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

func mcpCommand() *cobra.Command {
	var flags hostFlags
	cmd := &cobra.Command{
		Use: "mcp", Short: "List, add, review and call other MCP servers whose tools this host serves",
		Long: `List, add, review and call other MCP servers whose tools this host serves.

Their tools appear as mcp__SERVER__TOOL, and the same rules apply to them: without one, each call is asked. What a
server changes after it was first seen is withheld until you have reviewed and accepted it. Hosts that run notice what
these commands change.`,
	}
	flags.addRoots(cmd.PersistentFlags(), "a `DIR` the tools work in; repeatable (default: the working directory)")
	flags.addState(cmd.PersistentFlags())
	flags.addServers(cmd.PersistentFlags())
	cmd.AddCommand(mcpListCommand(&flags), mcpAddCommand(&flags), mcpRemoveCommand(&flags), mcpAllowHostCommand(&flags),
		mcpReviewCommand(&flags), mcpAcceptCommand(&flags), mcpRestartCommand(&flags),
		mcpLoginCommand(&flags), mcpLogoutCommand(&flags), mcpCallCommand(&flags))
	return cmd
}

func mcpListCommand(flags *hostFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "Connect to the servers, and list them with what they offer or why they fail",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(nil, func(host *mcpserver.Host) error {
				servers := host.Operator().Gateway().TryAll(cmd.Context())
				if asJSON {
					return printJSON(cmd.OutOrStdout(), map[string]any{"servers": listed(servers)})
				}
				if len(servers) == 0 {
					_, err := fmt.Fprintln(cmd.OutOrStdout(),
						"no other server is configured: toolhost mcp add NAME COMMAND adds one")
					return err
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, s := range servers {
					detail := s.Reason
					if n := len(s.Withheld); n > 0 && detail == "" {
						detail = fmt.Sprintf("%d withheld: toolhost mcp review %s", n, s.Name)
					}
					if len(s.Problems) > 0 && detail == "" {
						detail = strings.Join(s.Problems, "; ")
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%d tools\t%s\t%s\n", sanitized(s.Name), s.Type, s.State, s.Tools,
						sanitized(s.File), sanitized(detail))
				}
				return table.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listed turns nil into an empty list, which JSON shows as [].
func listed[T any](all []T) []T { return append([]T{}, all...) }

func mcpRemoveCommand(flags *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a server from your own settings",
		Args: exactly(1, "toolhost mcp remove files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := flags.serverFile()
			if err != nil {
				return err
			}
			if err := settings.SetServer(file, args[0], nil); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is removed from %s\n", args[0], sanitized(file))
			return err
		},
	}
}

func mcpReviewCommand(flags *hostFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "review NAME", Short: "Show what of a server is withheld until you accept it",
		Args: exactly(1, "toolhost mcp review files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.withState(func(host *mcpserver.Host) error {
				changes, err := host.Operator().Gateway().Review(args[0])
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				if asJSON {
					if err := printJSON(w, map[string]any{"server": args[0], "changes": listed(changes)}); err != nil {
						return err
					}
					return host.Operator().Gateway().Shown(args[0], changes)
				}
				for _, c := range changes {
					what := "changed"
					if c.Was == "" {
						what = "new"
					}
					fmt.Fprintf(w, "%s: %s since %s\n", sanitized(c.Name), what,
						c.Since.Local().Format("2006-01-02 15:04"))
					printChange(w, "- ", c.Was)
					printChange(w, "+ ", c.Is)
					if len(c.Copies) > 0 {
						fmt.Fprintf(w, "  it looks like %s\n", sanitized(strings.Join(c.Copies, ", ")))
					}
				}
				if len(changes) == 0 {
					_, err = fmt.Fprintf(w, "nothing of %s is withheld\n", sanitized(args[0]))
					return err
				}
				if _, err := fmt.Fprintf(w, "\ntoolhost mcp accept %s accepts all of it, unless it changes before\n",
					sanitized(args[0])); err != nil {
					return err
				}
				return host.Operator().Gateway().Shown(args[0], changes)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printChange prints the lines of a definition.
func printChange(w io.Writer, prefix, text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "%s%s\n", prefix, sanitized(strings.TrimSuffix(line, "\n")))
	}
}

func mcpAcceptCommand(flags *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use: "accept NAME", Short: "Accept what a server offers, as it was reviewed",
		Args: exactly(1, "toolhost mcp accept files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.withState(func(host *mcpserver.Host) error {
				changes, err := host.Operator().Gateway().Review(args[0])
				if err == nil {
					err = host.Operator().Gateway().Accept(args[0], changes)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d definitions of %s are accepted\n", len(changes),
					sanitized(args[0]))
				return err
			})
		},
	}
}

func mcpRestartCommand(flags *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use: "restart NAME", Short: "Start a server anew, also one that has ended too often",
		Args: exactly(1, "toolhost mcp restart files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.withState(func(host *mcpserver.Host) error {
				if _, err := host.Operator().Gateway().Review(args[0]); err != nil { // there is no server of that name
					return err
				}
				if err := markRestart(host, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "the next call starts %s anew\n", sanitized(args[0]))
				return err
			})
		},
	}
}

// markRestart asks the running hosts to restart a server.
func markRestart(host *mcpserver.Host, name string) error {
	mark := filepath.Join(host.Operator().StateDir(), "servers", name+".restart")
	if err := os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return err
	}
	return privatefile.Replace(mark, nil)
}

func mcpCallCommand(flags *hostFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call NAME TOOL [JSON|-|KEY=VALUE...]",
		Short: "Call a tool of a server through the whole pipeline and print its text",
		Long: `Call a tool of a server through the whole pipeline and print its text. The exit status is 1 when the tool
reports an error, or the call is refused: without a rule that allows it a person must be asked, and here no one is.
Arguments are given as to toolhost call.`,
		Args: atLeast(2, `toolhost mcp call files read_file path=README.md`),
		RunE: func(cmd *cobra.Command, args []string) error {
			input := []byte("{}")
			var err error
			if len(args) > 2 {
				var rest []string
				if input, rest, err = arguments(cmd, args[2:]); err == nil && len(rest) > 0 {
					err = usageError{fmt.Errorf("got %q after the arguments: give one JSON object, or words KEY=VALUE",
						rest[0])}
				}
			}
			if err != nil {
				return err
			}
			return flags.with(nil, func(host *mcpserver.Host) error {
				if _, err := host.Operator().Gateway().Review(args[0]); err != nil { // there is no server of that name
					return err
				}
				return runCall(cmd, host, "", "mcp__"+args[0]+"__"+args[1], input, "", asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}
