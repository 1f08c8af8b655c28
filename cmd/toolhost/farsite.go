package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

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
		return nil, fmt.Errorf("the host listens on a socket in the state directory, as %s: %w; name a shorter directory "+
			"with --far-dir DIR", p.socket, err)
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
	for _, encoded := range strings.Fields(string(raw)) {
		text, wrong := base64.StdEncoding.DecodeString(encoded)
		texts, err = append(texts, text), errors.Join(err, wrong)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--settings-from: %w", err)}
	}
	return texts, nil
}
