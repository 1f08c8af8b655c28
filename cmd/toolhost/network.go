package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/mcpserver"
)

// networkFlags say where the server listens, and how.
type networkFlags struct {
	address   string
	cert, key string
	plain     bool
	hosts     []string
}

func (f *networkFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "listen", "", "the `ADDRESS` to listen on: host:port, port 0 picking one, or unix:PATH "+
		"(default: "+listen.DefaultAddress+", or the socket that systemd has opened)")
	flags.StringVar(&f.cert, "tls-cert", "", "speak TLS with the certificate chain in this PEM `FILE`, which is read "+
		"again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "the `FILE` with the key of the certificate")
	flags.BoolVar(&f.plain, "insecure-plain-http", false,
		"listen without TLS where others can reach the server: tokens and files cross the network in the clear")
	flags.StringArrayVar(&f.hosts, "host", nil, "a `NAME` under which clients address the server; repeatable")
}

// own adds to a host's configuration the files that it obeys and makes in order to listen.
func (f *networkFlags) own(cfg *mcpserver.Config) {
	if f.cert != "" {
		cfg.Obeyed = append(cfg.Obeyed, f.cert)
	}
	if path := listen.SocketPath(f.address); path != "" {
		cfg.OwnFiles = append(cfg.OwnFiles, path, path+".lock")
	}
}

// isHost reports whether a name can be the host of a request. A pattern such as *.example.com would match no request.
func isHost(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" ||
		net.ParseIP(name) != nil
}

// open listens. It must be called before a host is opened, because it removes the variables of systemd from the
// environment.
func (f *networkFlags) open(log *slog.Logger) (*listen.Listener, listen.Notifier, error) {
	notifier := listen.NewNotifier(log)
	for _, name := range f.hosts {
		if !isHost(name) {
			return nil, notifier, usageError{fmt.Errorf("--host %q: give a name such as tools.example.com, without scheme and "+
				"port, each by itself, and as clients send it: xn--… in place of other letters", name)}
		}
	}
	l, err := listen.Open(listen.Config{
		Address: f.address, CertFile: f.cert, KeyFile: f.key, PlainHTTP: f.plain, Hosts: f.hosts, Log: log,
	})
	return l, notifier, errors.Join(err, listen.ClearEnvironment())
}
