package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

func mcpCommand() *cobra.Command {
	var flags hostFlags
	cmd := &cobra.Command{
		Use: "mcp", Short: "List, add, review and call other MCP servers whose tools this host serves",
		Long: `List, add, review and call other MCP servers whose tools this host serves.

Their tools appear as mcp__SERVER__TOOL, and the same rules apply to them: without one, each call is asked. What a server changes after
it was first seen is withheld until you have reviewed and accepted it. Hosts that run notice what these commands change.`,
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

// mcpServerName is a name under which a server can be served.
var mcpServerName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)

// An mcpServer is a server as it is written to a configuration file.
type mcpServer struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Network *serverNetwork    `json:"network,omitempty"`
}

type serverNetwork struct {
	AllowedDomains []string `json:"allowedDomains"`
}

func mcpAddCommand(flags *hostFlags) *cobra.Command {
	var env, headers, hosts []string
	var noTry bool
	cmd := &cobra.Command{
		Use: "add NAME COMMAND|URL [ARGUMENT]...", Short: "Add a server to your own settings",
		Args: atLeast(2, "toolhost mcp add files npx -y @modelcontextprotocol/server-filesystem ."),
		Long: `Add a server to your own settings: a program that speaks MCP over stdin and stdout, or the address of one that speaks it over HTTP.
Give the flags of toolhost before NAME. With --mcp-config FILE it is added to that file. The server is started once, to show what it
offers or why it cannot be used.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] == "--" {
				args = slices.Delete(args, 1, 2)
			}
			if len(args) < 2 {
				return usageError{errors.New("the command of the server is missing after --")}
			}
			entry, err := newMCPServer(args, env, headers, hosts)
			if err != nil {
				return usageError{err}
			}
			file, err := flags.serverFile()
			if err != nil {
				return err
			}
			raw, err := json.Marshal(entry)
			if err == nil {
				err = settings.SetServer(file, args[0], raw)
			}
			if err != nil {
				return err
			}
			if _, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is added to %s\n", args[0], sanitized(file)); err != nil ||
				noTry {
				return err
			}
			return flags.tryAdded(cmd, file, args[0])
		},
	}
	cmd.Flags().SetInterspersed(false) // the words after NAME are the command of the server
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil,
		"a variable `KEY=VALUE` for the server; ${NAME} stands for one of the host; repeatable")
	cmd.Flags().StringArrayVarP(&headers, "header", "H", nil, "a header `NAME: VALUE` of requests to a URL; repeatable")
	cmd.Flags().BoolVar(&noTry, "no-try", false, "do not start the server now")
	cmd.Flags().StringArrayVar(&hosts, "allow-host", nil,
		"a `HOST` that the server's process may reach; it then does not see the workspace; repeatable")
	return cmd
}

// tryAdded starts a server that was added, and offers the hosts that it asked for: as a question at a terminal,
// otherwise by printing the command that allows them.
func (f *hostFlags) tryAdded(cmd *cobra.Command, file, name string) error {
	w := cmd.OutOrStdout()
	for {
		var hosts []string
		err := f.with(nil, func(host *mcpserver.Host) error {
			err := tryOnce(cmd.Context(), w, host, name)
			hosts = host.Operator().Gateway().RefusedHosts(name)
			return err
		})
		if err != nil || len(hosts) == 0 {
			return err
		}
		fmt.Fprintf(w, "it asked for hosts that its entry does not allow: %s\nWith hosts it does not see your files.\n",
			sanitized(strings.Join(hosts, ", ")))
		if out, ok := w.(*os.File); !ok || !isTerminal(out) || !isTerminal(os.Stdin) {
			words := append([]string{"toolhost", "mcp", "allow-host", name}, hosts...)
			if len(f.servers) > 0 {
				words = slices.Insert(words, 2, "--mcp-config", file)
			}
			_, err = fmt.Fprintf(w, "To allow them: %s\n", sanitized(guard.Quote(words...)))
			return err
		}
		fmt.Fprint(w, "Allow them? [y/N] ")
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // without an answer they stay refused
		if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
			return nil
		}
		if err := settings.AllowServerHosts(file, name, hosts); err != nil {
			return err
		}
	}
}

// tryOnce starts a server that was added, and prints what it offers or why it cannot be used.
func tryOnce(ctx context.Context, w io.Writer, host *mcpserver.Host, name string) error {
	g := host.Operator().Gateway()
	if err := g.Try(ctx, name); err != nil {
		_, err = fmt.Fprintf(w, "it cannot be used yet: %s\ntoolhost mcp list tries again, and toolhost mcp remove %s removes it\n", mcpserver.Sanitize(err.Error()), sanitized(name))
		return err
	}
	var tools []string
	for _, d := range g.Tools() {
		if d.Server == name && !d.Unlisted {
			tools = append(tools, strings.TrimPrefix(d.Name, "mcp__"+name+"__"))
		}
	}
	_, err := fmt.Fprintf(w, "connected; tools: %d\n", len(tools))
	if err == nil && len(tools) > 0 {
		_, err = fmt.Fprintf(w, "  %s\nWithout a rule each call is asked: toolhost allow mcp__%s allows them\n",
			sanitized(strings.Join(tools, ", ")), sanitized(name))
	}
	return err
}

// newMCPServer makes the entry of a server of the words of a command line.
func newMCPServer(args, env, headers, hosts []string) (e mcpServer, err error) {
	name, target := args[0], args[1]
	if !mcpServerName.MatchString(name) || name == "toolhost" {
		return e, fmt.Errorf("a server cannot be named %q: use letters, digits, - and single _ within the name, and not toolhost", name)
	}
	if e.Env, err = pairs(env, "=", "--env", "KEY=VALUE"); err != nil {
		return e, err
	}
	if e.Headers, err = pairs(headers, ":", "--header", "'NAME: VALUE'"); err != nil {
		return e, err
	}
	if len(hosts) > 0 {
		e.Network = &serverNetwork{hosts}
	}
	web := strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
	switch {
	case web && len(args) > 2:
		return e, fmt.Errorf("the server %s is at a URL, which takes no arguments: got %q", name, args[2])
	case web && len(env)+len(hosts) > 0:
		return e, fmt.Errorf("the server %s is at a URL: --env and --allow-host are for programs", name)
	case !web && len(headers) > 0:
		return e, fmt.Errorf("the server %s is a program: --header is for a URL", name)
	case web:
		e.Type, e.URL = "http", target
	default:
		e.Command, e.Args = target, args[2:]
	}
	return e, nil
}

// pairs reads words of a name and a value.
func pairs(words []string, separator, flag, form string) (map[string]string, error) {
	var all map[string]string
	for _, word := range words {
		name, value, ok := strings.Cut(word, separator)
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("%s: expected %s, got %q", flag, form, word)
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = strings.TrimPrefix(value, " ")
	}
	return all, nil
}

// serverFile returns the file that servers are added to.
func (f *hostFlags) serverFile() (string, error) {
	switch len(f.servers) {
	case 0:
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "toolhost", "toolhost.json"), err
	case 1:
		return absolute(f.servers[0])
	}
	return "", usageError{fmt.Errorf("--mcp-config: name one file, got %d", len(f.servers))}
}

func mcpAllowHostCommand(flags *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use: "allow-host NAME HOST...", Short: "Let a server of your own settings reach hosts",
		Args:    atLeast(2, "toolhost mcp allow-host github api.github.com"),
		Example: "  toolhost mcp allow-host github api.github.com",
		Long: `Let a server of your own settings reach hosts. A server that may reach hosts does not see the workspace, unless
"roots" of its entry is "workspace".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, hosts := args[0], args[1:]
			for _, host := range hosts {
				if err := mcpserver.CheckRule(settings.Config{}, settings.ListHosts, host); err != nil {
					return usageError{err}
				}
			}
			file, err := flags.serverFile()
			if err != nil {
				return err
			}
			if err := settings.AllowServerHosts(file, name, hosts); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s may reach %s (%s)\n", sanitized(name),
				sanitized(strings.Join(hosts, ", ")), sanitized(file))
			return err
		},
	}
}

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
			return flags.with(nil, func(host *mcpserver.Host) error {
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
			return flags.with(nil, func(host *mcpserver.Host) error {
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
			return flags.with(nil, func(host *mcpserver.Host) error {
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
		Long: `Call a tool of a server through the whole pipeline and print its text. The exit status is 1 when the tool reports an error, or the call is
refused: without a rule that allows it a person must be asked, and here no one is. Arguments are given as to toolhost call.`,
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
				name := "mcp__" + args[0] + "__" + args[1]
				shown := showProgress(cmd.ErrOrStderr(), name)
				reply := host.Call(cmd.Context(), host.AdmitNamed(""),
					mcpserver.Request{Tool: name, Args: input, Progress: shown.callback()})
				shown.stop()
				if err := printReply(cmd.OutOrStdout(), reply, asJSON); err != nil {
					return err
				}
				if reply.IsError {
					return errReported
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}
