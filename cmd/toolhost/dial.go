package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// A farSite is where the host of one version, and of the same roots and settings, listens.
type farSite struct {
	socket   string
	args     []string // to start it with
	settings [][]byte // their texts
}

// farPlace returns the place of the host for the arguments of toolhost dial and settings. A changed program counts as
// another version.
func farPlace(state string, roots, args []string, settings [][]byte) (p farSite, err error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	info, err := os.Stat(self)
	if err != nil {
		return p, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return p, err
	}
	raw, err := json.Marshal([]any{versionString(), info.Size(), info.ModTime(), dir, roots, settings, args})
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(raw)
	p.socket = filepath.Join(state, farFolder, fmt.Sprintf("%x", sum[:8]))
	p.args = append([]string{self, dialName, "--serve=" + p.socket}, args...)
	p.settings = settings
	return p, os.MkdirAll(filepath.Dir(p.socket), 0o700)
}

// connect returns a link to the host, which it starts if none runs.
func (p farSite) connect(ctx context.Context) (link *net.UnixConn, err error) {
	if err := listen.CheckSocketPath(p.socket); err != nil {
		return nil, fmt.Errorf("the host listens on a socket in the state directory, as %s: %w; name a shorter directory with --far-dir DIR", p.socket, err)
	}
	if link, err = p.open(); err == nil {
		return link, nil
	}
	lock := privatefile.NewLock(p.socket + ".start")
	ctx, cancel := context.WithTimeout(ctx, farStart)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("another process starts the host of this workspace and does not finish, end it: %w", err)
	}
	defer lock.Close()
	if link, err = p.open(); err == nil {
		return link, nil
	}
	ended, err := p.start()
	if err != nil {
		return nil, fmt.Errorf("the host cannot be started: %w", err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if link, err = p.open(); err == nil {
				return link, nil
			}
		case err := <-ended:
			return nil, fmt.Errorf("the host did not start (%w): %s", err, p.log())
		case <-ctx.Done():
			return nil, fmt.Errorf("the host did not listen within %s, see %s.log: %w", farStart, p.socket, ctx.Err())
		}
	}
}

// open connects to the host and shows it the token.
func (p farSite) open() (*net.UnixConn, error) {
	link, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	token, err := auth.ReadToken(p.socket + ".token")
	if err == nil {
		_, err = link.Write([]byte(token + "\n"))
	}
	if err != nil {
		link.Close()
		return nil, err
	}
	return link, nil
}

// start starts the host, which outlives this process.
func (p farSite) start() (ended <-chan error, err error) {
	log, err := os.OpenFile(p.socket+".log", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := p.args
	for i, text := range p.settings {
		file := fmt.Sprintf("%s.%d.json", p.socket, i)
		if err := privatefile.Replace(file, text); err != nil {
			return nil, err
		}
		args = append(args, "--settings="+file)
	}
	host, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{nil, log, log}, Sys: detached()})
	if err != nil {
		return nil, err
	}
	end := make(chan error, 1)
	go func() {
		state, err := host.Wait()
		if err == nil {
			err = errors.New(state.String())
		}
		end <- err
	}()
	return end, nil
}

// log returns the end of what the host has said.
func (p farSite) log() string {
	raw, err := os.ReadFile(p.socket + ".log")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(raw[max(0, len(raw)-maxFarLog):]))
}

// copyLink copies the input and output of this process until one side ends.
func copyLink(link *net.UnixConn) error {
	go func() {
		_, _ = io.Copy(link, pollable(os.Stdin))
		_ = link.CloseWrite()
	}()
	_, err := io.Copy(os.Stdout, link)
	return err
}

// maxSettings bounds the texts of settings that come from the near side, in bytes.
const maxSettings = 16 << 20

// settingsTexts reads settings from a descriptor; 0: there are none.
func settingsTexts(from int) (texts [][]byte, err error) {
	if from == 0 {
		return nil, nil
	}
	f := os.NewFile(uintptr(from), "settings")
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSettings))
	if err == nil {
		texts, err = decodedTexts(strings.Fields(string(raw)))
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--settings-from: %w", err)}
	}
	return texts, nil
}

// decodedTexts decodes texts in base64.
func decodedTexts(encoded []string) (texts [][]byte, err error) {
	for _, e := range encoded {
		text, err := base64.StdEncoding.DecodeString(e)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
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
			return fmt.Errorf("the settings there do not mask %s: a person adds it there (toolhost credential add), or sends settings that do (--settings)", name)
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
		return server.ServeHTTP(ctx, far, mcpserver.HTTPConfig{Verifier: callers, Warm: warm, Relay: farRoutes(ctx, host, server, callers)})
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
	mux.HandleFunc("GET "+remote.TasksPath, func(w http.ResponseWriter, _ *http.Request) { _ = printJSON(w, runningTasks(host)) })
	mux.HandleFunc("POST "+remote.RevokePath, func(_ http.ResponseWriter, r *http.Request) { callers.Revoke(r.URL.Query().Get("principal")) })
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
