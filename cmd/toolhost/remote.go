package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/guard/credential"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// targetFlags say how the far side of a target is started.
type targetFlags struct {
	binary, farDir string
}

func (f *targetFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.binary, "binary", "", "the `FILE` with toolhost for the system of the target (default: this "+
		"program, or one of the same release next to it)")
	flags.StringVar(&f.farDir, "far-dir", "", "the `DIR` of the target for the program and its state (default: the state "+
		"directory of the user there)")
}

// parseTarget reads a target of a command line.
func parseTarget(name string) (remote.Target, error) {
	target, err := remote.Parse(name)
	if err != nil {
		return target, usageError{err}
	}
	return target, nil
}

// near dials a target. dial holds the arguments of toolhost dial on the far side, and settings the texts of further
// settings.
func (f *targetFlags) near(
	ctx context.Context, stderr io.Writer, target remote.Target, dial []string, settings [][]byte,
	credentials remote.Credentials,
) *remote.Near {
	if target.Root != "" {
		dial = append([]string{"--root=" + target.Root}, dial...)
	}
	l := remote.NewLauncher(target, f.binary)
	l.Version, l.Args, l.Settings, l.FarDir = versionString(), dial, settings, f.farDir
	say := func(text string) { fmt.Fprintln(stderr, "toolhost:", sanitized(text)) }
	l.Say = say
	return remote.NewNear(ctx, l.Dial, credentials, func(err error) { say(err.Error()) })
}

// remoteFlags are the flags of toolhost remote.
type remoteFlags struct {
	host      hostFlags
	target    targetFlags
	network   networkFlags
	stateDir  string
	tokenFile string
	forward   []string
	secrets   []string // names of masked variables
	ephemeral bool
	suspend   bool
}

// leave releases or suspends the sandbox of a target after the last link, if the flags say so.
func (f *remoteFlags) leave(target remote.Target) error {
	switch {
	case target.Sandbox != nil && f.ephemeral:
		return target.Sandbox.Release(context.Background())
	case target.Sandbox != nil && f.suspend:
		return target.Sandbox.Suspend(context.Background())
	}
	return nil
}

func remoteCommand() *cobra.Command {
	var flags remoteFlags
	cmd := &cobra.Command{
		Use: "remote TARGET [stdio|http]", Short: "Serve a client here with the tools of a host on another machine or in a " +
			"container",
		Long: `Serve a client here with the tools of a host on another machine or in a container: files, commands, rules and
the sandbox are there, the client, its keys and its questions are here. Nothing is ever run here instead.

A target is one of
  ` + strings.Join(remote.Targets(), "\n  ") + `

toolhost starts a command there with your own ssh, docker, podman, kubectl, devcontainer or wsl.exe, and with your
configuration of it. sandbox: is a workspace of your own in a warm pool of agent-sandbox on Kubernetes; it is claimed
when there is none, and deleted when it was not used for 7 days. cmd: takes any command that starts its arguments
there and passes their input and output. The program is brought there if it is missing; the target needs a POSIX sh
and no Internet. The host there serves all clients with the same roots and settings, and ends when it has had no
client and no background task for remote.linger.

When the link breaks it is opened again, and calls go on: each runs once. While there is no link, a call waits for 20
seconds and is then refused with the reason. If the host there has ended, the calls that were with it are reported as
unknown and not repeated.

The rules and settings are those of the user and the workspace there. --settings, --allow and --deny are sent along,
and of your credentials those of --credential only.`,
		Example: `  toolhost remote ssh://me@box/home/me/project
  toolhost remote docker://app/src --deny 'Read(.env)'
  toolhost remote ssh://box/srv/project http --listen 127.0.0.1:8377`,
		Args: cobra.MatchAll(atLeast(1, "toolhost remote ssh://box/srv/project"), cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			dial, settings, err := flags.host.dialArguments()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			ignoreSIGPIPE()
			kind := stdioKind
			if len(args) > 1 {
				kind = args[1]
			}
			if kind != stdioKind && kind != httpKind {
				return usageError{fmt.Errorf("%q: serve the client over stdio or http", kind)}
			}
			target, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			if target.Sandbox == nil && (flags.ephemeral || flags.suspend) {
				return usageError{fmt.Errorf("--ephemeral and --suspend are for targets sandbox://, not for %s",
					args[0])}
			}
			more, credentials, err := flags.credentials()
			if err != nil {
				return err
			}
			near := flags.target.near(ctx, cmd.ErrOrStderr(), target, append(dial, more...), settings, credentials)
			defer func() { cancel(); <-near.Done(); err = errors.Join(err, flags.leave(target)) }()
			if err := forward(ctx, cmd.ErrOrStderr(), near, flags.forward); err != nil {
				return err
			}
			if kind == stdioKind {
				return remote.ServeStdio(ctx, near, pollable(os.Stdin), os.Stdout, parentExited(ctx))
			}
			return flags.serveHTTP(ctx, cmd.ErrOrStderr(), near)
		},
	}
	flags.add(cmd)
	return cmd
}

// add adds the flags.
func (f *remoteFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	h := &f.host
	h.addRoots(set, "a `DIR` of the target that the tools work in, in addition to that of TARGET; repeatable (default: "+
		"where commands start there)")
	h.addRules(set)
	h.addTools(cmd)
	h.addStructured(set)
	f.target.add(set)
	set.BoolVar(&f.ephemeral, "ephemeral", false, "with sandbox://: delete the workspace at the end")
	set.BoolVar(&f.suspend, "suspend", false, "with sandbox://: suspend the sandbox at the end; the workspace stays")
	cmd.MarkFlagsMutuallyExclusive("ephemeral", "suspend")
	set.StringArrayVar(&f.secrets, "credential", nil,
		"the `NAME` of a masked variable (toolhost credential list) whose value here serves commands there, where it is masked too; repeatable")
	set.StringArrayVar(&f.forward, "forward", nil,
		"a `PORT` of this machine's loopback interface that leads to the same one of the target, such as that of a server in a background task, or HERE:THERE; repeatable")
	set.StringVar(&f.network.address, "listen", "", "with http: the `ADDRESS` to listen on (default: "+
		listen.DefaultAddress+")")
	set.StringVar(&f.tokenFile, "token-file", "",
		"with http: the `FILE` that holds the bearer token (default: one is made and kept in the state directory)")
	set.StringVar(&f.stateDir, "state-dir", "",
		"with http: the `DIR` for the token (default: $XDG_STATE_HOME/toolhost)")
}

// credentials returns the arguments of the far host for its credentials, and a function that finds their values each
// time a link is opened. With credentials, a far host serves one user of one machine only.
func (f *remoteFlags) credentials() (args []string, find remote.Credentials, err error) {
	if len(f.secrets) == 0 {
		return nil, nil, nil
	}
	masks := map[string]settings.Mask{}
	for _, name := range f.secrets {
		if err := f.host.eachMask([]string{name}, func(list string, m settings.Mask) error {
			if list == maskedVars {
				masks[name] = m
			}
			return nil
		}); err != nil {
			return nil, nil, usageError{fmt.Errorf("--credential: %w", err)}
		}
		if _, ok := masks[name]; !ok {
			return nil, nil, usageError{fmt.Errorf("--credential: %s is not a variable", name)}
		}
		args = append(args, "--credential="+name)
	}
	me, err := user.Current()
	if err != nil {
		return nil, nil, err
	}
	machine, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	return append(args, "--credentials-of="+me.Username+"@"+machine),
		func(ctx context.Context) (map[string]string, error) {
			values := map[string]string{}
			for name, m := range masks {
				value, err := credential.Value(ctx, name, m.Command, m.File, os.Getenv(name))
				if err != nil { // the error names files and commands
					return nil, remote.Refuse(fmt.Errorf("the credential %s has no value here; "+
						"toolhost credential test %[1]s shows a person why", name))
				}
				values[name] = value
			}
			return values, nil
		}, nil
}

// rootArguments returns the arguments of the far host for its roots.
func rootArguments(roots []string) (args []string) {
	for _, root := range roots {
		args = append(args, "--root="+root)
	}
	return args
}

// dialArguments returns the arguments of the far host, from the flags of this command, and the texts of settings.
func (f *hostFlags) dialArguments() (args []string, settings [][]byte, err error) {
	if err := f.checkTools(); err != nil {
		return nil, nil, err
	}
	each := func(flag string, values []string) {
		for _, value := range values {
			args = append(args, "--"+flag+"="+value)
		}
	}
	args = rootArguments(f.roots)
	each("allow", f.allow)
	each("deny", f.deny)
	each("tools", f.tools)
	each("with", f.more)
	if f.structured != "auto" && f.structured != "" {
		each("structured", []string{f.structured})
	}
	if f.toolSearch != "auto" && f.toolSearch != "" {
		each("tool-search", []string{f.toolSearch})
	}
	if f.trust != (trustFlag{}) {
		each("trust-workspace", []string{f.trust.String()})
	}
	for _, file := range f.settings {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, fmt.Errorf("--settings: %w", err)
		}
		settings = append(settings, raw)
	}
	return args, settings, nil
}

// serveHTTP serves HTTP clients that present the token.
func (f *remoteFlags) serveHTTP(ctx context.Context, stderr io.Writer, near *remote.Near) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	l, notifier, err := f.network.open(log)
	if err != nil {
		return err
	}
	defer l.Close()
	state, err := (&hostFlags{stateDir: f.stateDir}).stateDirectory()
	if err != nil {
		return err
	}
	known := &callers{}
	if known.token, known.file, known.made, err = mcpserver.KeptToken(state, f.tokenFile); err != nil {
		return err
	}
	verifier, err := auth.NewStaticToken(known.token, mcpserver.TokenPrincipal)
	if err != nil {
		return err
	}
	quiet := slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	web := &http.Server{
		Handler: authorized(verifier, remote.Proxy(near, quiet)), ErrorLog: quiet,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	announce(stderr, isTerminal(os.Stderr), l, known, mcpserver.Endpoint, []string{"the host of the target"})
	notifier.NotifyReady(ctx, func() bool { return true })
	defer notifier.NotifyStopping(ctx)()
	defer context.AfterFunc(ctx, func() { web.Close() })()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// authorized passes on requests with a valid token, as [mcpserver.Server.ServeHTTP] does.
func authorized(verifier auth.Verifier, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := mcpserver.CheckAddress(r, nil); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if r.URL.Path != mcpserver.Endpoint {
			http.Error(w, "the MCP endpoint is "+mcpserver.Endpoint, http.StatusNotFound)
			return
		}
		bearer, wrong := auth.ParseAuthorization(r.Header.Values("Authorization"))
		_, err := verifier.Verify(r.Context(), bearer)
		if err == nil && wrong != "" {
			err = errors.New(wrong)
		}
		if err != nil {
			w.Header().Set("WWW-Authenticate", auth.Challenge(err, ""))
			http.Error(w, err.Error()+"; a bearer token is required: send Authorization: Bearer <token>",
				auth.Status(err))
			return
		}
		r.Header.Set("Authorization", "Bearer "+auth.RelayBearer(mcpserver.Local()))
		next.ServeHTTP(w, r)
	})
}
