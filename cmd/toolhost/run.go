package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/mcpserver"
)

// An exitStatus makes this program exit as the client did.
type exitStatus int

func (exitStatus) Error() string { return errReported.Error() }

func (exitStatus) Is(err error) bool { return err == errReported }

// Exit codes for a client that could not be started. They are those of shells.
const (
	exitNotStarted = 126
	exitNotFound   = 127
)

// runFlags are the flags of toolhost run.
type runFlags struct {
	host     hostFlags
	hosts    []string
	weaker   bool
	ungated  bool
	owned    bool
	copyOf   string
	announce io.Writer
	messages heldMessages
}

func runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use: "run [flags] CLIENT [ARG]...", Short: "Run a whole agent in a sandbox, under the same rules",
		Long: `Run a client, with all that it starts, in a sandbox of its own. The rules hold for its own shell and file
tools: each program that it starts is judged, files are denied and protected, hosts are refused, and nothing is left
running at the end. It reaches the tools of this host over a socket. What a rule asks is asked at the console; what it
changed is in toolhost history.

The exit status is that of the client: 126 if it could not be started, 127 if there is no such program.`,
		Example: "  toolhost run -- claude\n  toolhost run --root ~/src/project --allow-host registry.npmjs.org -- bash",
		Args:    atLeast(1, "toolhost run -- claude"),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.announce = cmd.ErrOrStderr()
			return flags.run(cmd.Context(), args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	flags.host.add(cmd)
	flags.host.observe.warn(cmd.Flags())
	flags.host.console.add(cmd.Flags())
	cmd.Flags().StringArrayVar(&flags.hosts, "allow-host", nil,
		"a `HOST` that the client reaches, such as *.example.com or localhost:11434; repeatable")
	cmd.Flags().BoolVar(&flags.weaker, "weaker", false,
		"run also where the sandbox does not hold everything; what is missing is said")
	cmd.Flags().BoolVar(&flags.ungated, "no-exec-gate", false,
		"do not judge the programs that the client starts, for one that needs a seccomp listener of its own")
	cmd.Flags().BoolVar(&flags.owned, "owned", false, "end with the process that started this one")
	cmd.Flags().StringVar(&flags.copyOf, "copy-of", "", "the work tree that the root is a copy of")
	_, _ = cmd.Flags().MarkHidden("owned"), cmd.Flags().MarkHidden("copy-of") // fails only for an undefined flag
	return cmd
}

func (f *runFlags) run(ctx context.Context, args []string) error {
	if builtin.InCall() {
		return errors.New("toolhost run cannot be nested: this process is in a sandbox of toolhost already, whose rules " +
			"hold for all that it starts. Start the client itself")
	}
	sandbox.Options{}.Prepare() // prepares while the host starts
	f.host.console.on = true
	cfg, err := f.host.config(nil, false)
	if err != nil {
		return err
	}
	program, err := f.clientProgram(args[0])
	if err != nil {
		fmt.Fprintln(f.announce, "toolhost run:", sanitized(err.Error()))
		if _, there := os.Stat(args[0]); there == nil && strings.ContainsRune(args[0], filepath.Separator) {
			return exitStatus(exitNotStarted)
		}
		return exitStatus(exitNotFound)
	}
	cfg.Contained, cfg.CopyOf = true, f.copyOf
	cfg.Log = slog.New(heldLog{cfg.Log.Handler(), &f.messages})
	return open(cfg, func(host *mcpserver.Host) error {
		server, err := mcpserver.NewServer(host)
		if err != nil {
			return err
		}
		ignoreSIGPIPE()
		return f.host.sidecars(ctx, host, stdioKind, func() {},
			func() error { return f.client(ctx, host, server, program, args) })
	})
}

// clientProgram finds the client on the host. If PATH names it only in a directory that tools and commands can write,
// as in a root that is the home directory, the client is started and the user is told, because it runs in the
// sandbox. With a weaker sandbox the client must be named by its path.
func (f *runFlags) clientProgram(name string) (string, error) {
	path, err := findProgram(name)
	if skipped := hostprogram.Skipped(err); len(skipped) > 0 && !f.weaker {
		fmt.Fprintf(f.announce, "toolhost run: %s is started from where tools and commands can write\n",
			sanitized(skipped[0]))
		return skipped[0], nil
	}
	return path, err
}

// findProgram finds a client on the host. The error for a name in PATH includes a program that was skipped because
// tools and commands can write it: that program runs when it is named by its path.
func findProgram(name string) (string, error) {
	path, err := hostprogram.Find(name)
	if err == nil {
		_, err = exec.LookPath(path) // reports whether it can be started
	}
	if errors.Is(err, exec.ErrNotFound) && errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w, or name it by its path", err)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("there is no program %q in PATH", name)
	}
	return path, err
}

// client runs the client, and returns its exit status.
func (f *runFlags) client(ctx context.Context, host *mcpserver.Host, server *mcpserver.Server, program string,
	args []string) error {
	cfg := builtin.CellSpec{Name: filepath.Base(args[0]), NoExecGate: f.ungated, Weaker: f.weaker, Env: clientEnv(host)}
	known, err := newRunClient(cfg.Name, host.Operator().StateDir())
	if err != nil {
		return err
	}
	if cfg.Dir, err = clientDir(host.Operator().Roots()); err != nil {
		return err
	}
	if cfg.Hosts, cfg.Ports, err = splitHosts(slices.Concat(known.hosts(), f.hosts)); err != nil {
		return err
	}
	if err := known.files(&cfg, host.Operator().Roots()); err != nil {
		return err
	}
	cfg.Argv = slices.Concat([]string{program}, args[1:])
	var running atomic.Pointer[builtin.Cell]
	publish := func(port int) error {
		if cell := running.Load(); cell != nil {
			return cell.PublishLogin(port)
		}
		return errors.New("the client has not started")
	}
	cfg.Prepare = func(spec *builtin.CellSpec, dir, socket string) error {
		more, err := known.entry(spec, dir, socket)
		if err != nil {
			return err
		}
		spec.Argv = slices.Concat([]string{program}, more, args[1:])
		pages := &pageOpener{hosts: spec.Hosts, publish: publish, open: openAddress, now: time.Now}
		bin, browser, err := serveBrowser(ctx, dir, ownProgram(), pages)
		spec.Sockets = append(spec.Sockets, browser)
		spec.Env = slices.DeleteFunc(spec.Env,
			func(e string) bool { return strings.HasPrefix(e, "PATH=") || strings.HasPrefix(e, "BROWSER=") })
		path := bin + string(os.PathListSeparator) + os.Getenv("PATH")
		spec.Env = append(spec.Env, "PATH="+path, "BROWSER="+filepath.Join(bin, "xdg-open"))
		return err
	}
	if f.ungated {
		fmt.Fprintln(f.announce, "toolhost run: --no-exec-gate: the programs that the client starts are not judged")
	}
	std, err := openStdio()
	if err != nil {
		return err
	}
	cfg.Files, cfg.Terminal = std.files, std.terminal != nil
	if std.files[2] == nil {
		f.messages.hold(f.announce)
		defer f.messages.release(host.Log())
	}
	cell, err := server.StartCell(ctx, mcpserver.Local(), cfg)
	if err != nil {
		return f.notStarted(err, program)
	}
	defer cell.Close()
	running.Store(cell)
	if len(cell.Gaps) > 0 {
		fmt.Fprintf(f.announce, "toolhost run: --weaker: %s\n", sanitized(strings.Join(cell.Gaps, "; ")))
	}
	if f.owned {
		go killWithParent(ctx, cell)
	}
	status, err := std.attend(cell)
	f.messages.release(host.Log())
	failure := ""
	if cell.Terminal != nil {
		failure = cell.Terminal.Failure()
	}
	for _, line := range cell.Close() {
		fmt.Fprintln(f.announce, "toolhost run:", sanitized(line))
	}
	switch {
	case err != nil:
		return err
	case failure != "":
		return f.notStarted(errors.New(failure), program)
	}
	return statusError(status.ExitCode)
}

// killWithParent ends a client when the parent of this process has ended.
func killWithParent(ctx context.Context, cell *builtin.Cell) {
	<-parentExited(ctx)
	_, _ = cell.Kill()
}

func statusError(code int) error {
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}

// notStarted says why the client does not run.
func (f *runFlags) notStarted(err error, program string) error {
	if text := err.Error(); strings.Contains(text, "exec "+program+":") {
		hint := ""
		if strings.Contains(text, fs.ErrNotExist.Error()) || errors.Is(err, fs.ErrNotExist) {
			hint = ": the sandbox does not show it; install it outside of /tmp and of what rules deny"
		}
		fmt.Fprintf(f.announce, "toolhost run: %s%s\n", sanitized(text), hint)
		return exitStatus(exitNotStarted)
	}
	return err
}

// clientDir returns the client's working directory: the current one, if it lies in a root.
func clientDir(roots []string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return roots[0], nil
	}
	real, err := filepath.EvalSymlinks(here)
	if err != nil {
		return "", err
	}
	for _, root := range roots {
		if root, err := filepath.EvalSymlinks(root); err == nil && isBelow(real, root) {
			return here, nil
		}
	}
	return roots[0], nil
}

// withheldVariables are variables of this process that a client must not get: our own, those that load code into
// programs, and those that name directories for temporary files, which the client could not write.
var withheldVariables = []string{"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "PWD", "OLDPWD", "SHLVL", "_",
	"TMP", "TEMP"}

// clientEnv returns the environment of the client: the user's, without the variables that the settings withhold from
// commands.
func clientEnv(host *mcpserver.Host) []string {
	secret := host.Operator().Settings().Sandbox.Credentials.EnvVars
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		for _, s := range secret {
			if s.Text == name {
				return true
			}
		}
		return slices.Contains(withheldVariables, name) || strings.HasPrefix(name, "TOOLHOST_")
	})
}

// splitHosts separates services of this machine from hosts.
func splitHosts(names []string) (hosts []string, ports []int, err error) {
	for _, name := range names {
		host, port, err := net.SplitHostPort(name)
		if err == nil && guard.IsLoopback(host) {
			n, err := net.LookupPort("tcp", port)
			if err != nil {
				return nil, nil, usageError{fmt.Errorf("--allow-host %q: %w", name, err)}
			}
			if !slices.Contains(ports, n) {
				ports = append(ports, n)
			}
			continue
		}
		if strings.Contains(name, "/") {
			return nil, nil, usageError{fmt.Errorf("--allow-host %q: give a host such as *.example.com or localhost:11434, "+
				"without scheme and path", name)}
		}
		hosts = append(hosts, name)
	}
	return hosts, ports, nil
}

// connectCommand is the command that a client in a cell starts as its MCP server. It connects stdin and stdout to the
// socket of the host.
func connectCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use: "connect SOCKET", Short: "Carry MCP to the host of toolhost run", Hidden: true,
		Args: exactly(1, "toolhost connect /path/mcp.sock"),
		RunE: func(_ *cobra.Command, args []string) error {
			conn, err := net.Dial("unix", args[0])
			if err != nil {
				return err
			}
			defer conn.Close()
			if address != "" {
				fmt.Fprintln(conn, address)
				if why, _ := io.ReadAll(conn); len(why) > 0 {
					return errors.New(strings.TrimSpace(string(why)))
				}
				return nil
			}
			return copyLink(conn.(*net.UnixConn))
		},
	}
	cmd.Flags().StringVar(&address, "open", "", "have the `URL` opened in the browser instead")
	return cmd
}
