package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

func stdioCommand() *cobra.Command {
	var flags hostFlags
	cmd := &cobra.Command{
		Use: "stdio [flags] [ROOT]...", Short: "Serve one client over stdin and stdout",
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.served(args, func(host *mcpserver.Host) error {
				server, err := mcpserver.NewServer(host)
				if err != nil {
					return err
				}
				ignoreSIGPIPE()
				return flags.sidecars(cmd.Context(), host, stdioKind, func() {}, func() error {
					return server.ServeStdio(cmd.Context(), pollable(os.Stdin), os.Stdout, parentExited(cmd.Context()))
				})
			})
		},
	}
	flags.add(cmd)
	flags.scopes.add(cmd.Flags())
	flags.addStructured(cmd.Flags())
	flags.console.add(cmd.Flags())
	flags.observe.addServing(cmd.Flags())
	return cmd
}

func httpCommand() *cobra.Command {
	var flags hostFlags
	var network networkFlags
	var callers authFlags
	var workspaces string
	cmd := &cobra.Command{
		Use: "http [flags] [ROOT]...", Short: "Serve clients over streamable HTTP",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if workspaces != "" {
				flags.roots = append(flags.roots, args...)
				return flags.serveWorkspaces(cmd.Context(), workspaces, &network, &callers)
			}
			cfg, err := flags.config(args, true)
			if err != nil {
				return err
			}
			if err := protectFiles(&cfg, callers.tokenFile, callers.tokens, network.key); err != nil {
				return err
			}
			network.own(&cfg)
			if callers.tokens != "" {
				cfg.OwnFiles = append(cfg.OwnFiles, callers.tokens+".lock") // the lock of a process that adds a token
			}
			l, notifier, err := network.open(cfg.Log)
			if err != nil {
				return err
			}
			defer l.Close() // already closed if the server has run
			host, err := mcpserver.Open(cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			known, err := callers.open(cmd.Context(), host.Token, cfg)
			if err != nil {
				return err
			}
			defer known.close()
			server, err := mcpserver.NewServer(host)
			if err != nil {
				return err
			}
			ignoreSIGPIPE()
			begin := func() {
				announce(os.Stderr, isTerminal(os.Stderr), l, known, mcpserver.Endpoint, cfg.Roots)
				// Ready blocks if the host hangs.
				notifier.NotifyReady(cmd.Context(), func() bool { _ = host.Ready(); return true })
			}
			defer notifier.NotifyStopping(cmd.Context())()
			flags.address = l.URL
			if l.Socket != "" {
				flags.address = "unix:" + l.Socket
			}
			return flags.sidecars(cmd.Context(), host, httpKind, begin, func() error {
				nextSteps(cmd.Context(), os.Stderr, host, l, known, flags.console.board != nil)
				known.Hosts, known.Inherited, known.Watch, known.Connections = network.hosts, l.Inherited, listen.Watch,
					l.Connections
				return server.ServeHTTP(cmd.Context(), l, known.HTTPConfig)
			})
		},
	}
	flags.add(cmd)
	network.add(cmd.Flags())
	flags.console.add(cmd.Flags())
	flags.observe.addServing(cmd.Flags())
	flags.scopes.add(cmd.Flags())
	flags.addStructured(cmd.Flags())
	flags.scopes.addStrict(cmd.Flags())
	callers.add(cmd.Flags())
	addWorkspaces(cmd, &workspaces)
	return cmd
}

// served opens a host while do runs. If a root cannot be served, the host starts nevertheless, and each call returns
// the reason: if the server exited, clients would show only that it is disconnected.
func (f *hostFlags) served(names []string, do func(*mcpserver.Host) error) error {
	cfg, err := f.hostConfig(names, false)
	if err != nil {
		return err
	}
	if cfg.Refuse = unusableRoot(cfg.Roots); cfg.Refuse != nil {
		dir, err := os.MkdirTemp("", "toolhost-no-root-")
		if err != nil {
			return errors.Join(cfg.Refuse, err)
		}
		defer os.Remove(dir)
		cfg.Roots = []string{dir}
		fmt.Fprintln(os.Stderr, "toolhost:", sanitized(cfg.Refuse.Error())+"; every call is refused with this text")
	}
	return open(cfg, do)
}

// unusableRoot says which root no host can serve, and why.
func unusableRoot(roots []string) error {
	if err := answering(roots); err != nil {
		return err
	}
	for _, root := range roots {
		switch info, err := os.Stat(root); {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("the root %s does not exist: correct the directory in the arguments that the client starts "+
				"toolhost with, or make it", root)
		case err != nil:
			return fmt.Errorf("the root %s cannot be used: %w", root, err)
		case !info.IsDir():
			return fmt.Errorf("the root %s is not a directory: name the directory that it is in", root)
		}
	}
	return nil
}

// rootPatience is how long the file system of a root may take to answer.
const rootPatience = 5 * time.Second

// answering returns an error if the file system of a root does not answer, before a system call waits for it.
func answering(roots []string) error {
	for _, root := range roots {
		if !guard.Answers(root, rootPatience) {
			return fmt.Errorf("the file system of the root %s does not answer: unmount it (umount -l) or make its server "+
				"answer, then try again", root)
		}
	}
	return nil
}

// ignoreSIGPIPE makes a write to a pipe without a reader return an error. By default Go ends the process if that pipe
// is stdout or stderr, in the middle of calls and without releasing locks. Commands still get the signal.
func ignoreSIGPIPE() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// announce prints how to reach the endpoint of the server. A new token is printed once, and only to a person at a
// terminal, because others may read a log.
func announce(w io.Writer, person bool, l *listen.Listener, known *callers, endpoint string, roots []string) {
	where := l.URL + endpoint
	if l.Socket != "" {
		where = "unix:" + l.Socket
	}
	fmt.Fprintf(w, "listening on %s\nserving %s\n", sanitized(where), sanitized(strings.Join(roots, ", ")))
	switch {
	case known.token == "": // another server issues the tokens
	case known.made && person:
		fmt.Fprintf(w, "token %s (kept in %s)\n", known.token, sanitized(known.file))
	default:
		fmt.Fprintf(w, "the token is in %s\n(show it with: cat %s)\n", sanitized(known.file), shellQuote(known.file))
	}
}

// nextSteps tells what a server enforces, and how a client is added to it.
func nextSteps(ctx context.Context, w io.Writer, host *mcpserver.Host, l *listen.Listener, known *callers,
	console bool) {
	set := host.Operator().Settings()
	fmt.Fprintf(w, "mode %s; sandbox %s\n", set.DefaultMode, sandboxLine(ctx, &set.Sandbox))
	if !console {
		fmt.Fprintln(w, "no console: with --console you see calls and answer questions in a browser")
	}
	if l.Socket != "" || known.token == "" { // no client on this machine is known to reach the host
		return
	}
	fmt.Fprintf(w, "next: export %s=\"$(cat %s)\"\n      toolhost install %s --http %s\n",
		clients.TokenVariable, shellQuote(known.file), firstClient().Name, shellQuote(l.URL+mcpserver.Endpoint))
}
