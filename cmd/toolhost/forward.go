package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
)

// A forwarding forwards a port of this machine's loopback interface to a port of the target's.
type forwarding struct{ here, there int }

// parseForwarding reads PORT, or HERE:THERE.
func parseForwarding(text string) (f forwarding, err error) {
	here, there, both := strings.Cut(text, ":")
	if !both {
		there = here
	}
	for i, number := range []string{here, there} {
		port, err := strconv.ParseUint(number, 10, 16)
		if err != nil || port == 0 {
			return f, usageError{fmt.Errorf("--forward %q: expected a port such as 5173, or two such as 8080:5173",
				text)}
		}
		*[]*int{&f.here, &f.there}[i] = int(port)
	}
	return f, nil
}

// forward forwards ports of this machine to the target until ctx is done.
func forward(ctx context.Context, stderr io.Writer, near *remote.Near, texts []string) error {
	for _, text := range texts {
		f, err := parseForwarding(text)
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.here)))
		if err != nil {
			return fmt.Errorf("--forward %s: %w", text, err)
		}
		context.AfterFunc(ctx, func() { l.Close() })
		go f.accept(ctx, stderr, near, l)
	}
	return nil
}

// accept connects the clients of a port until its listener is closed.
func (f forwarding) accept(ctx context.Context, stderr io.Writer, near *remote.Near, l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			there, err := remote.Tunnel(ctx, near, remote.PortPath+"?port="+strconv.Itoa(f.there))
			if err != nil {
				fmt.Fprintf(stderr, "toolhost remote: localhost:%d: %s\n", f.here, sanitized(err.Error()))
				return
			}
			defer there.Close()
			remote.Join(ctx, client, there, there)
		}()
	}
}

// servePort connects the near side to a program that listens on the loopback interface of this machine.
func servePort(w http.ResponseWriter, r *http.Request) {
	port, err := strconv.ParseUint(r.URL.Query().Get("port"), 10, 16)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	conn, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", net.JoinHostPort("localhost", strconv.Itoa(int(port))))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer conn.Close()
	remote.Join(r.Context(), conn, r.Body, remote.Duplex(w))
}
