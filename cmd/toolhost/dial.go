package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/console"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/guard/credential"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/doctor"
)

const (
	// dialName is the name of the command.
	dialName = "dial"
	// farFolder is the subdirectory of the state directory with the sockets of hosts for relays.
	farFolder = "remote"
	// farStart is how long a host for relays may take to start.
	farStart = 30 * time.Second
	// farLook is the interval at which a host for relays checks whether it is idle.
	farLook = time.Second
	// maxFarLog is how much of the log of a host that did not start is shown, in bytes.
	maxFarLog = 2 << 10
)

// dialCommand is the far side of toolhost remote.
func dialCommand() *cobra.Command {
	var flags hostFlags
	var serve string
	var from int
	var front frontHost
	var secrets []string
	cmd := &cobra.Command{
		Use: dialName + " [flags] [ROOT]...", Hidden: true,
		Short: "Connect the input and output to the host of toolhost remote, and start it if need be",
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := atHome(append(flags.roots, args...))
			if err != nil {
				return err
			}
			flags.roots = nil
			if serve != "" {
				for _, name := range secrets {
					credential.Expect(name)
				}
				return flags.serveRelays(cmd.Context(), serve, front, secrets, args)
			}
			state, err := flags.stateDirectory()
			if err != nil {
				return err
			}
			texts, err := settingsTexts(from)
			if err != nil {
				return err
			}
			place, err := farPlace(state, args, os.Args[slices.Index(os.Args, dialName)+1:], texts)
			if err != nil {
				return err
			}
			link, err := place.connect(cmd.Context())
			if err != nil && !errors.Is(err, context.DeadlineExceeded) { // the next connection would fail as well
				fmt.Fprintln(cmd.OutOrStdout(), remote.FailMark+sanitized(err.Error()))
			}
			if err != nil {
				return err
			}
			defer link.Close()
			return copyLink(link)
		},
	}
	flags.add(cmd)
	flags.addStructured(cmd.Flags())
	flags.scopes.add(cmd.Flags())
	flags.scopes.addStrict(cmd.Flags())
	cmd.Flags().BoolVar(&front.callers, "front", false,
		"the relays are those of toolhost http --workspaces: callers come over a network")
	cmd.Flags().StringVar(&front.apart, "apart", "",
		"the `DIR` with the workspaces of others, of which one is the root")
	cmd.Flags().StringArrayVar(&secrets, "credential", nil,
		"the `NAME` of a variable whose value links bring; repeatable")
	cmd.Flags().String("credentials-of", "", "the `USER` whose values these are: others have another host")
	cmd.Flags().IntVar(&from, "settings-from", 0, "the `DESCRIPTOR` to read texts of settings from, a line of base64 each")
	cmd.Flags().StringVar(&serve, "serve", "", "be the host, on this socket")
	return cmd
}

// atHome expands ~/ at the beginning of directories: no shell does it for the arguments of toolhost remote.
func atHome(dirs []string) (all []string, err error) {
	for _, dir := range dirs {
		if rest, ok := strings.CutPrefix(dir+"/", "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, err
			}
			dir = filepath.Join(home, rest)
		}
		all = append(all, dir)
	}
	return all, nil
}

// A frontHost says whether a host is that of a workspace of toolhost http --workspaces.
type frontHost struct {
	callers bool   // they come over a network
	apart   string // the directory with other workspaces, if there is one
}

// serveRelays is the host for relays: it serves until it has been idle.
func (f *hostFlags) serveRelays(ctx context.Context, socket string, front frontHost, secrets,
	roots []string) (err error) {
	f.console.on = true // it costs nothing before it is opened
	cfg, err := f.config(roots, front.callers)
	if err != nil {
		return err
	}
	cfg.Apart = front.apart
	if err := unusableRoot(cfg.Roots); err != nil {
		return err
	}
	if err := listen.ClearEnvironment(); err != nil {
		return err
	}
	host, err := mcpserver.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	masked := host.Operator().Settings().Sandbox.Credentials.MaskedVars
	for _, name := range secrets {
		if !slices.ContainsFunc(masked, func(m settings.Mask) bool { return m.Entry.Text == name }) {
			return fmt.Errorf("the settings there do not mask %s: a person adds it there (toolhost credential add), or sends "+
				"settings that do (--settings)", name)
		}
	}
	server, err := mcpserver.NewServer(host)
	if err != nil {
		return err
	}
	token, err := keptToken(socket + ".token")
	if err != nil {
		return err
	}
	l, err := listen.Open(listen.Config{Address: "unix:" + socket, Log: cfg.Log})
	if err != nil {
		return err
	}
	far := remote.NewFar(l, versionString(), token, credential.Receive)
	defer far.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go endIdle(ctx, host, far, stop)
	callers, warm := auth.NewRelay(), mcpserver.LocalPrincipal
	if front.callers {
		warm = ""
	}
	ignoreSIGPIPE()
	return f.sidecars(ctx, host, farKind, func() {}, func() error {
		return server.ServeHTTP(ctx, far, mcpserver.HTTPConfig{Verifier: callers, Warm: warm,
			Relay: farRoutes(ctx, host, server, callers)})
	})
}

// keptToken returns the token of the links, made when there is none. It is not replaced: another host that still runs
// would refuse the links that show the new one.
func keptToken(file string) (string, error) {
	token, err := auth.ReadToken(file)
	if err != nil {
		token = rand.Text()
		err = privatefile.Replace(file, []byte(token+"\n"))
	}
	return token, err
}

// endIdle stops a host that has had no client and no task for long enough.
func endIdle(ctx context.Context, host *mcpserver.Host, far *remote.Far, stop func()) {
	tick := time.NewTicker(farLook)
	defer tick.Stop()
	last := time.Now() // when there was something
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if runningTasks(host) > 0 || far.Used() {
				last = now
			}
			if now.Sub(last) > host.Operator().Settings().Remote.Linger {
				stop()
				return
			}
		}
	}
}

// runningTasks counts the background tasks.
func runningTasks(host *mcpserver.Host) (n int) {
	for _, t := range host.Operator().Tasks() {
		if !t.Over() {
			n++
		}
	}
	return n
}

// farRoutes answers what relays ask in addition to MCP over HTTP.
func farRoutes(ctx context.Context, host *mcpserver.Host, server *mcpserver.Server, callers *auth.Relay) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+remote.StdioPath, func(w http.ResponseWriter, r *http.Request) {
		both, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(r.Context(), cancel)()
		// The near side notices the end of the stream.
		_ = server.ServeNamed(both, rand.Text(), r.Body, remote.Duplex(w))
	})
	mux.HandleFunc("POST "+remote.PortPath, servePort)
	mux.HandleFunc("GET "+remote.TasksPath,
		func(w http.ResponseWriter, _ *http.Request) { _ = printJSON(w, runningTasks(host)) })
	mux.HandleFunc("POST "+remote.RevokePath,
		func(_ http.ResponseWriter, r *http.Request) { callers.Revoke(r.URL.Query().Get("principal")) })
	mux.HandleFunc("GET "+remote.AboutPath, func(w http.ResponseWriter, r *http.Request) {
		_ = printJSON(w, farAbout{Version: versionString(), Roots: host.Operator().Roots(),
			Findings: host.Operator().Examine(r.Context())})
	})
	mux.HandleFunc("GET "+remote.ConsolePath, func(w http.ResponseWriter, _ *http.Request) {
		i, err := farConsole(host, "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = printJSON(w, i)
	})
	mux.HandleFunc("POST "+remote.ConsolePath, func(w http.ResponseWriter, r *http.Request) {
		i, err := farConsole(host, r.URL.Query().Get("id"))
		if err == nil {
			var conn net.Conn
			if conn, err = net.Dial("unix", i.Socket()); err == nil {
				defer conn.Close()
				remote.Join(r.Context(), conn, r.Body, remote.Duplex(w))
				return
			}
		}
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	})
	return mux
}

// farConsole returns the console with this id, of a host for relays with the same roots. Without an id it returns the
// newest console of another process: this process may have been started only to ask for it.
func farConsole(host *mcpserver.Host, id string) (found console.Instance, err error) {
	all, err := console.Find(host.Operator().StateDir())
	for _, i := range all {
		if i.Kind != farKind || !slices.Equal(i.Roots, host.Operator().Roots()) || id != "" && i.ID != id {
			continue
		}
		if found.ID == "" || i.PID != os.Getpid() {
			found = i
		}
	}
	if found.ID == "" {
		return found, errors.Join(errors.New("no host with a console serves these roots there"), err)
	}
	return found, nil
}

// A farAbout is what a host says of itself to relays.
type farAbout struct {
	Version  string           `json:"version"`
	Roots    []string         `json:"roots"`
	Findings []doctor.Finding `json:"findings"`
}
