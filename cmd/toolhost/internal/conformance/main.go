// Command conformance serves the official MCP conformance suite: a toolhost with the suite's fixtures next to
// its own tools. The suite sends no token, so a proxy in front of the guarded endpoint adds it and passes on
// everything else as it came. It is for tests only: all that reach the proxy are let in.
//
// With the path of toolhost as its argument, it is the far host of that program's command remote, and the suite
// meets the relay.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

func main() {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "version": // the relay tries its far program with it
	case len(os.Args) > 1 && os.Args[1] == "dial":
		err = dial(strings.TrimPrefix(os.Args[len(os.Args)-1], "--state-dir="))
	default:
		ctx, cancel := context.WithCancel(context.Background())
		go func() { // the process that started this ends it by closing its input
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		err = run(ctx, strings.Join(os.Args[1:], ""))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done, through a relay if program is not empty. The first line on stdout is the address for
// the suite.
func run(ctx context.Context, program string) (err error) {
	dir, err := os.MkdirTemp("", "toolhost-conformance-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	host, err := openHost(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	server, err := mcpserver.NewServer(host)
	if err != nil {
		return err
	}
	guarded, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	token, cfg := rand.Text(), mcpserver.HTTPConfig{Warm: mcpserver.TokenPrincipal}
	bearer, address := token, guarded.Addr().String()
	if program != "" {
		guarded.Close() // the relay takes its port
		bearer, cfg.Relay = auth.RelayBearer(mcpserver.Local()), http.NotFoundHandler()
		var near *exec.Cmd
		if guarded, near, err = relay(ctx, program, dir, address, token); err != nil {
			return err
		}
		defer func() { _ = near.Wait() }() // it was told to end
	}
	if cfg.Verifier, err = auth.NewStaticToken(bearer, mcpserver.TokenPrincipal); err != nil {
		return err
	}
	proxy := &http.Server{Handler: withToken("http://"+address, token)}
	failed := make(chan error, 1)
	go func() { failed <- proxy.Serve(open) }()
	fmt.Printf("http://%s%s\n", open.Addr(), mcpserver.Endpoint)
	err = errors.Join(server.ServeHTTP(ctx, guarded, cfg), proxy.Close())
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// openHost opens a host below dir that asks a person about one fixture, so that the suite meets our own
// questions, allows the others, and serves the others in addition to its own tools.
func openHost(dir string) (*mcpserver.Host, error) {
	root, rules := filepath.Join(dir, "root"), filepath.Join(dir, "rules.json")
	skill := filepath.Join(root, ".claude", "skills", "test-skill")
	if err := os.MkdirAll(filepath.Join(skill, "references"), 0o700); err != nil {
		return nil, err
	}
	for file, text := range map[string]string{"SKILL.md": "---\nname: test-skill\ndescription: A fixture of the " +
		"conformance suite.\nlicense: MIT\n---\nRead references/a.md.\n", "references/a.md": "A reference.\n"} {
		if err := os.WriteFile(filepath.Join(skill, filepath.FromSlash(file)), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	extension := fixtures()
	extension.Tools = append(extension.Tools, listChange(rules))
	permissions := map[string][]string{"ask": {askedTool}}
	for _, t := range extension.Tools {
		permissions["allow"] = append(permissions["allow"], t.Tool.Name)
	}
	if err := writeRules(rules, permissions); err != nil {
		return nil, err
	}
	return mcpserver.Open(mcpserver.Config{
		Roots: []string{root}, StateDir: filepath.Join(dir, "state"), Settings: []string{rules}, Remote: true,
		With: []string{"Skill"}, TrustWorkspace: true,
		Extension: extension, Version: "conformance", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// writeRules writes a settings file.
func writeRules(file string, permissions map[string][]string) error {
	text, err := json.Marshal(map[string]any{"permissions": permissions})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// withToken passes requests on to target with the token and with everything else untouched, the Host header
// included: what the guard makes of them is what is tested.
func withToken(target, token string) http.Handler {
	to, err := url.Parse(target)
	if err != nil {
		panic(err) // it was made of a listener's address
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An answer that begins before the request was read to its end would cut the connection.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
}
