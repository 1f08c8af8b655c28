package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/console"
	"github.com/toolhost/toolhost/mcpserver"
)

// consoleFlags are the flags of a host with a console.
type consoleFlags struct {
	on, always bool
	listen     string
	board      *console.Console // nil without a console
}

func (f *consoleFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "console", false, "show what happens on a page in the browser, and ask there what the client "+
		"cannot ask: see toolhost console")
	flags.BoolVar(&f.always, "console-waits", false,
		"let questions wait for the console also while no page is open; implies --console")
	flags.StringVar(&f.listen, "console-listen", "",
		"the loopback `ADDRESS` of the console, such as 127.0.0.1:0; implies --console")
}

// apply lets a console observe the host of this configuration.
func (f *consoleFlags) apply(cfg *mcpserver.Config) {
	if f.on || f.always || f.listen != "" {
		f.board = console.New(f.always)
		f.board.Watch(cfg)
	}
}

// open opens the console, if there is one.
func (f *consoleFlags) open(host *mcpserver.Host, kind string) ([]sidecar, error) {
	if f.board == nil {
		return nil, nil
	}
	cfg := console.Config{Listen: f.listen, StateDir: host.Operator().StateDir(), Kind: kind, Log: host.Log()}
	if f.listen == "" && kind == httpKind {
		cfg.Listen = console.AnyLoopback()
	}
	site, err := f.board.Open(host, cfg)
	if err != nil {
		return nil, err
	}
	return []sidecar{{announce: func() { announceConsole(os.Stderr, site, isTerminal(os.Stderr)) },
		serve: site.Serve}}, nil
}

// The kinds of hosts, by how clients reach them. Only a host over HTTP listens on a port; the console of any other
// host listens on a socket.
const (
	stdioKind = "stdio"
	httpKind  = "http"
	farKind   = "remote"
)

// announceConsole tells how to open the console. The link is shown to a person at a terminal only: a log may lie
// where the agent can read it.
func announceConsole(w io.Writer, site *console.Server, person bool) {
	switch {
	case site.URL() == "":
		fmt.Fprintln(w, "the console is opened by: toolhost console")
	case person:
		fmt.Fprintf(w, "console %s\n(the link works once; another is printed by: toolhost console)\n", site.Link())
	default:
		fmt.Fprintf(w, "console listening on %s (its link is printed by: toolhost console)\n", site.URL())
	}
}

func consoleCommand() *cobra.Command {
	var flags hostFlags
	var listen string
	var far farFlags
	cmd := &cobra.Command{
		Use: "console [flags] [HOST]", Short: "Open the console of a host that runs: see calls, approve, stop, undo",
		Long: `Open the console of a host that runs: see its calls, approve what a rule asks, stop tasks, undo changes.

The host must have been started with --console. The command prints a link for your browser, which works once. When
several hosts run, HOST says which: the beginning of its id, its process id, or a root of it. The console of a
stdio host, and one of another machine, is served for as long as this command runs.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if far.name != "" {
				return far.console(cmd, args, listen)
			}
			state, err := flags.stateDirectory()
			if err != nil {
				return err
			}
			all, err := console.Find(state)
			if err != nil {
				return err
			}
			chosen, err := choose(cmd.ErrOrStderr(), all, args)
			if err != nil {
				return err
			}
			if chosen.URL == "" {
				return forwardConsole(cmd, chosen, nil, listen)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), console.Link(chosen.URL, chosen.Code))
			return err
		},
	}
	flags.addState(cmd.Flags())
	far.add(cmd.Flags(), "open the console of the host that toolhost remote uses for this `TARGET`")
	cmd.Flags().StringVar(&listen, "listen", "", "the loopback `ADDRESS` to serve the console of a stdio host on "+
		"(default: one that is free)")
	return cmd
}

// stateDirectory is the state directory that the flags name, or the default one.
func (f *hostFlags) stateDirectory() (string, error) {
	if f.stateDir != "" {
		return absolute(f.stateDir)
	}
	return mcpserver.DefaultStateDir()
}

// ownState returns the path of a state directory whose content is the user's own.
func (f *hostFlags) ownState() (string, error) {
	dir, err := f.stateDirectory()
	if err == nil {
		err = mcpserver.CheckStateDir(dir)
	}
	return dir, err
}

// choose returns the selected console, or lists all consoles.
func choose(w io.Writer, all []console.Instance, args []string) (console.Instance, error) {
	fit := all
	if len(args) > 0 {
		fit = nil
		for _, i := range all {
			if isMeant(i, args[0]) {
				fit = append(fit, i)
			}
		}
	}
	switch {
	case len(all) == 0:
		return console.Instance{}, errors.New("no host with a console runs on this state directory: start one with " +
			"toolhost http --console, or add --console to the arguments that your client starts toolhost stdio with")
	case len(fit) == 1:
		return fit[0], nil
	}
	if err := printConsoles(w, all); err != nil {
		return console.Instance{}, err
	}
	if len(fit) == 0 {
		return console.Instance{}, fmt.Errorf("no host fits %q: name one of these", args[0])
	}
	return console.Instance{}, fmt.Errorf("%d hosts run: name one by its id, process or root", len(fit))
}

func isMeant(i console.Instance, name string) bool {
	path, err := absolute(name)
	return strings.HasPrefix(i.ID, name) || strconv.Itoa(i.PID) == name || err == nil && slices.Contains(i.Roots, path)
}

func printConsoles(w io.Writer, all []console.Instance) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "id\tprocess\tkind\tsince\troots")
	for _, i := range all {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", i.ID, i.PID, i.Kind, i.Began.Local().Format("2006-01-02 15:04"),
			sanitized(strings.Join(i.Roots, ", ")))
	}
	return table.Flush()
}

// forwardConsole serves a console that listens on a socket, and prints the link.
func forwardConsole(cmd *cobra.Command, i console.Instance, dial func(context.Context) (net.Conn, error),
	listen string) error {
	if listen == "" {
		listen = console.AnyLoopback()
	}
	out := cmd.OutOrStdout()
	f, err := console.Forward(i, dial, listen, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, console.Link(f.URL(), sanitized(i.Code)))
	fmt.Fprintln(cmd.ErrOrStderr(), "the link works once; the console is served until you end this command")
	err = f.Serve(cmd.Context())
	if errors.Is(err, console.ErrHostEnded) {
		fmt.Fprintln(cmd.ErrOrStderr(), "the host has ended")
		return nil
	}
	return err
}
