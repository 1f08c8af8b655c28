package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// dirPlaces are workspaces on this machine: the subdirectories of one directory. The host of a workspace is the one
// that toolhost dial starts. All servers of the same directory share it.
type dirPlaces struct {
	dir      string // without links
	state    string
	args     []string // of the hosts, without their root
	settings [][]byte // the texts of their settings
	log      *slog.Logger
}

// dirPlaces returns the workspaces in a directory. Their hosts have the flags of this command.
func (f *hostFlags) dirPlaces(dir string, cfg mcpserver.Config, callers *authFlags,
	network *networkFlags) (*dirPlaces, error) {
	args, texts, err := f.frontArguments()
	if err != nil {
		return nil, err
	}
	var secret mcpserver.Config
	if err := protectFiles(&secret, callers.tokenFile, callers.tokens, network.key,
		f.observe.metrics.TokenFile); err != nil {
		return nil, err
	}
	for _, rule := range secret.Deny {
		args = append(args, "--deny="+rule, "--deny="+strings.Replace(rule, "Read(", "Edit(", 1))
	}
	args = append(args, "--apart="+dir, "--state-dir="+cfg.StateDir, "--audit-max-size="+
		f.observe.auditMaxSize.String(),
		"--audit-keep="+strconv.Itoa(f.observe.auditKeep), "--log-level="+f.observe.logLevel)
	var files [][2]string // in the same order each time: servers with equal arguments share their hosts
	if cfg.AuditLog != "" {
		files = append(files, [2]string{"audit-log", cfg.AuditLog})
	}
	for _, file := range cfg.MCPConfig {
		files = append(files, [2]string{"mcp-config", file})
	}
	for _, f := range files {
		abs, err := filepath.Abs(f[1])
		if err != nil {
			return nil, err
		}
		args = append(args, "--"+f[0]+"="+abs)
	}
	place, err := farPlace(cfg.StateDir, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := listen.CheckSocketPath(place.socket); err != nil {
		return nil, usageError{fmt.Errorf("the hosts of workspaces listen on sockets in the state directory, as %s: %w; "+
			"name a shorter one with --state-dir", place.socket, err)}
	}
	return &dirPlaces{dir, cfg.StateDir, args, texts, cfg.Log}, nil
}

// frontArguments returns the arguments of the hosts of workspaces on any machine, and the texts of their settings.
func (f *hostFlags) frontArguments() (args []string, settings [][]byte, err error) {
	args, settings, err = f.dialArguments()
	args = append(args, "--front")
	for _, key := range f.scopes.keys {
		args = append(args, "--scope-key="+key)
	}
	if f.scopes.strict {
		args = append(args, "--strict-scope")
	}
	if f.scopes.argument {
		args = append(args, "--session-argument")
	}
	return args, settings, err
}

// find implements [places].
func (d *dirPlaces) find(who auth.Identity, name string) (w remote.Workspace, err error) {
	if !isWorkspaceName(name) || !d.mayEnter(&who, name) {
		return w, mcpserver.ErrNoWorkspace
	}
	path := filepath.Join(d.dir, name)
	if info, err := os.Lstat(path); err != nil || !info.IsDir() { // a link is refused too
		return w, mcpserver.ErrNoWorkspace
	}
	return remote.Workspace{
		Caller: who.Principal, Name: name, Key: name, Bearer: auth.RelayBearer(who),
		Dial: func() (remote.Dialer, error) { return d.dialer(name, path) },
	}, nil
}

// mayEnter reports whether a caller may enter a workspace, and sets the root that it has there.
func (d *dirPlaces) mayEnter(who *auth.Identity, name string) bool {
	if who.Root == "" {
		return true
	}
	rel, err := filepath.Rel(d.dir, who.Root)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	if rel == "." {
		who.Root = filepath.Join(d.dir, name)
		return true
	}
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return first == name
}

// dialer returns a function that opens links to the host of a workspace, and starts the host if necessary.
func (d *dirPlaces) dialer(name, path string) (remote.Dialer, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	exact, alike := false, 0
	for _, e := range entries {
		exact = exact || e.Name() == name
		if strings.EqualFold(e.Name(), name) {
			alike++
		}
	}
	if alike > 1 {
		d.log.Warn("a workspace is not served: the names of directories differ only in case", "directory", d.dir,
			"name", name)
	}
	if !exact || alike > 1 {
		return nil, mcpserver.ErrNoWorkspace
	}
	place, err := farPlace(d.state, []string{path}, append([]string{"--root=" + path}, d.args...), d.settings)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ func()) (io.ReadWriteCloser, error) {
		link, err := place.connect(ctx)
		if err != nil {
			return nil, remote.Refuse(err)
		}
		return link, nil
	}, nil
}
