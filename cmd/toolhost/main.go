// Command toolhost serves the tools that coding agents are trained on to any MCP client, and enforces the
// guards on the server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
	"github.com/toolhost/toolhost/mcpserver"
)

// version is set by the linker for releases.
var version = ""

func main() {
	ownprocess.TrimWhenIdle()
	if err := builtin.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "toolhost:", err)
		os.Exit(1)
	}
	ensureHome(user.Current)
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := command()
	switch {
	case len(args) == 1 && args[0] == "--version":
		args = []string{"version"}
	case !isTerminal(os.Stdin):
		args = implied(root, args)
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintln(os.Stderr, "toolhost:", mcpserver.Sanitize(err.Error()))
		if errors.Is(err, syscall.EADDRINUSE) {
			fmt.Fprintln(os.Stderr, "another program listens there: choose another address, with port 0 for one that is free, "+
				"or stop it; toolhost status lists the hosts that run")
		}
	}
	return exitCode(err)
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends, so that running calls can be drained. A second
// signal ends the process at once: signals get their default action back before the context ends. With
// [signal.NotifyContext], a second signal that arrives in between is lost.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-caught:
		case <-ctx.Done():
		}
		signal.Stop(caught) // no further signals arrive on the channel after it returns
		if len(caught) > 0 && ctx.Err() == nil {
			second, _ := (<-caught).(syscall.Signal)
			os.Exit(128 + int(second)) // the status by which a shell reports that a signal ended a program
		}
		cancel()
	}()
	return ctx, cancel
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "toolhost",
		Short: "The tools that coding agents are trained on, for any MCP client, under your rules",
		Long: `toolhost serves Read, Edit, Write, Bash, Glob and Grep over MCP and enforces your rules itself: files are
read before they are edited, rules allow, ask or deny, commands run in a sandbox, and changes can be undone.

Directories named by --root, or after the flags, are what the tools work in; without any it is the working directory.
Without a command and with an input that is not a terminal, toolhost serves over stdio: toolhost --root DIR and
toolhost DIR are how a client can start it.`,
		SilenceUsage: true, SilenceErrors: true, PersistentPreRunE: refuseEmpty,
	}
	root.AddCommand(stdioCommand(), httpCommand(), callCommand(), toolsCommand(), checkCommand(), rulesCommand(),
		schemaCommand(), trustCommand(), keepCommand(),
		runCommand(), tryCommand(), demoCommand(), connectCommand(), installCommand(), uninstallCommand(), verifyCommand(),
		mcpCommand(), tokenCommand(), historyCommand(), diffCommand(), undoCommand(), rewindCommand(), modeCommand(),
		agentCommand(), consoleCommand(), remoteCommand(), dialCommand(), statusCommand(), logCommand(), doctorCommand(),
		profileCommand(), versionCommand(), manCommand(), exitCodesTopic())
	root.AddCommand(append(permitCommands(), credentialCommand())...)
	arrange(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	tellUsage(root)
	return root
}

// versionString is the release, or what the build knows of the commit.
func versionString() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	if v, ok := strings.CutPrefix(info.Main.Version, "v"); ok {
		return v // of go install MODULE@VERSION
	}
	return "dev"
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
