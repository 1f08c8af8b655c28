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

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

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
		Use: "add [flags] NAME COMMAND|URL [ARGUMENT]...", Short: "Add a server to your own settings",
		Args: atLeast(2, "toolhost mcp add files npx -y @modelcontextprotocol/server-filesystem ."),
		Long: `Add a server to your own settings: a program that speaks MCP over stdin and stdout, or the address of one
that speaks it over HTTP. Give the flags of toolhost before NAME. With --mcp-config FILE it is added to that file. The
server is started once, to show what it offers or why it cannot be used.`,
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
			err := f.tryOnce(cmd.Context(), w, host, file, name)
			hosts = host.Operator().Gateway().RefusedHosts(name)
			return err
		})
		if err != nil || len(hosts) == 0 {
			return err
		}
		fmt.Fprintf(w, "it asked for hosts that its entry does not allow: %s\nWith hosts it does not see your files.\n",
			sanitized(strings.Join(hosts, ", ")))
		if out, ok := w.(*os.File); !ok || !isTerminal(out) || !isTerminal(os.Stdin) {
			_, err = fmt.Fprintf(w, "To allow them: %s\n", f.mcpCommand(file, append([]string{"allow-host", name}, hosts...)...))
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

// mcpCommand is a command about the servers in file as a person would type it.
func (f *hostFlags) mcpCommand(file string, words ...string) string {
	words = append([]string{"toolhost", "mcp"}, words...)
	if len(f.servers) > 0 {
		words = slices.Insert(words, 2, "--mcp-config", file)
	}
	return sanitized(guard.Quote(words...))
}

// tryOnce starts a server that was added to file, and prints what it offers or why it cannot be used.
func (f *hostFlags) tryOnce(ctx context.Context, w io.Writer, host *mcpserver.Host, file, name string) error {
	g := host.Operator().Gateway()
	if err := g.Try(ctx, name); err != nil {
		_, err = fmt.Fprintf(w, "it cannot be used yet: %s\n%s tries again, and %s removes it\n",
			mcpserver.Sanitize(err.Error()), f.mcpCommand(file, "list"), f.mcpCommand(file, "remove", name))
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
		return e, fmt.Errorf("a server cannot be named %q: use letters, digits, - and single _ within the name, and not "+
			"toolhost", name)
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
	case strings.HasPrefix(target, "-"):
		return e, fmt.Errorf("%s is no command: give the flags of toolhost before the name %s, and a command after it",
			target, name)
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
