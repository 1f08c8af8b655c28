package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolhost/toolhost/integration/client"
)

// sessions measures Reads while ever more clients have a session over HTTP.
func (s *scale) sessions() (*curve, error) {
	c := &curve{of: "sessions over HTTP"}
	root := filepath.Join(s.dir, "served")
	path := filepath.Join(root, "file.txt")
	if err := put(path, fileText(0, 0)); err != nil {
		return nil, err
	}
	for _, n := range decades(1, 1e3) {
		if err := s.served(c, root, path, int(n)); err != nil {
			return nil, fmt.Errorf("%.0f sessions: %w", n, err)
		}
		c.sizes = append(c.sizes, n)
	}
	return c, nil
}

// served measures with so many sessions: a Read when one client asks, and one of each at once.
func (s *scale) served(c *curve, root, path string, n int) error {
	cmd, url, token, err := s.serve(root)
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conns := make([]*client.Conn, n)
	read, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return err
	}
	begun := time.Now()
	for i := range conns {
		if conns[i], err = client.HTTP(ctx, client.Legacy, url, token); err != nil {
			return err
		}
		if err := readOnce(ctx, conns[i], string(read)); err != nil {
			return err
		}
	}
	c.add("opening one, with a Read", "ms", milliseconds(time.Since(begun))/float64(n))
	settle(cmd.Process.Pid)
	var alone []float64
	for i := range often {
		begun := time.Now()
		if err := readOnce(ctx, conns[i*n/often], string(read)); err != nil {
			return err
		}
		alone = append(alone, milliseconds(time.Since(begun)))
	}
	c.add("Read of one", "ms", median(alone))
	begun = time.Now()
	if err := readAll(ctx, conns, string(read)); err != nil {
		return err
	}
	c.add("a Read of each at once, for one", "ms", milliseconds(time.Since(begun))/float64(n))
	c.add("memory", "MB", megabytes(memory(cmd.Process.Pid)))
	return nil
}

func readOnce(ctx context.Context, conn *client.Conn, args string) error {
	r, err := conn.Call(ctx, "Read", args)
	if err == nil && r.IsError {
		err = errors.New(r.Text())
	}
	return err
}

// atOnce is how many clients ask at once at most: the sockets of one process are few.
const atOnce = 64

func readAll(ctx context.Context, conns []*client.Conn, args string) error {
	errs := make([]error, len(conns))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, conn := range conns {
		slots <- struct{}{}
		all.Go(func() {
			errs[i] = readOnce(ctx, conn, args)
			<-slots
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// wait bounds how long a host that serves HTTP may take to listen.
const wait = 30 * time.Second

// serve starts the host over HTTP.
func (s *scale) serve(root string) (cmd *exec.Cmd, url, token string, err error) {
	home, err := s.home()
	if err != nil {
		return nil, "", "", err
	}
	web := *s.host
	web.argv = []string{s.host.argv[0], "http", "--listen", "127.0.0.1:0", "--root"}
	cmd = web.command(root, home)
	r, w := io.Pipe()
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		return nil, "", "", err
	}
	defer time.AfterFunc(wait, func() { w.CloseWithError(fmt.Errorf("the host did not listen within %v", wait)) }).Stop()
	if url, token, err = client.Announced(r); err != nil {
		_ = cmd.Process.Kill()
		return nil, "", "", errors.Join(err, cmd.Wait())
	}
	return cmd, url, token, nil
}
