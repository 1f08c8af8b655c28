package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
)

// relay starts toolhost remote, which serves at address and has this program as its far side. The listener accepts what
// it relays.
func relay(ctx context.Context, toolhost, dir, address, token string) (net.Listener, *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	far, file, secret := filepath.Join(dir, "far"), filepath.Join(dir, "token"), rand.Text()
	if err := os.Mkdir(far, 0o700); err != nil {
		return nil, nil, err
	}
	for path, text := range map[string]string{file: token, filepath.Join(far, "secret"): secret} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return nil, nil, err
		}
	}
	links, err := net.Listen("unix", filepath.Join(far, "socket"))
	if err != nil {
		return nil, nil, err
	}
	near := exec.CommandContext(ctx, toolhost, "remote", "cmd:env", "http", "--listen", address, "--token-file", file,
		"--binary", self, "--far-dir", far)
	near.Cancel = func() error { return near.Process.Signal(os.Interrupt) }
	near.Stderr = os.Stderr
	if err := near.Start(); err != nil {
		return nil, nil, err
	}
	for range 1000 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return remote.NewFar(links, "conformance", secret, func(map[string]string) {}), near, conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, near, errors.Join(fmt.Errorf("toolhost remote does not listen at %s", address), near.Process.Kill())
}

// dial connects the input and output to the process that waits in a directory.
func dial(dir string) error {
	secret, err := os.ReadFile(filepath.Join(dir, "secret"))
	if err != nil {
		return err
	}
	link, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"})
	if err != nil {
		return err
	}
	if _, err := link.Write(secret); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(link, os.Stdin)
		_ = link.CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, link)
	return err
}
