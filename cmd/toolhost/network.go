package main

import (
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/pflag"

	"toolhost/mcpserver"
	"toolhost/mcpserver/listen"
)

// networkFlags say where the server listens, and how.
type networkFlags struct {
	address   string
	cert, key string
	plain     bool
	hosts     []string
}

func (f *networkFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "listen", "", "the `ADDRESS` to listen on: host:port, port 0 picking one, or unix:PATH (default: "+listen.DefaultAddress+", or the socket that systemd has opened)")
	flags.StringVar(&f.cert, "tls-cert", "", "speak TLS with the certificate chain in this PEM `FILE`, which is read again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "the `FILE` with the key of the certificate")
	flags.BoolVar(&f.plain, "insecure-plain-http", false, "listen without TLS where others can reach the server: tokens and files cross the network in the clear")
	flags.StringArrayVar(&f.hosts, "host", nil, "a `NAME` under which clients address the server; repeatable")
}

// open listens. What systemd says is taken out of the environment first, so it is called before a host is opened.
func (f *networkFlags) open(log *slog.Logger) (*listen.Listener, listen.Notifier, error) {
	notifier := listen.NewNotifier(log)
	for _, name := range f.hosts {
		if (name == "" || strings.ContainsAny(name, "/:@ ")) && net.ParseIP(name) == nil {
			return nil, notifier, usageError{fmt.Errorf("--host %q: give a name such as tools.example.com, without scheme and port", name)}
		}
	}
	l, err := listen.Open(listen.Config{
		Address: f.address, CertFile: f.cert, KeyFile: f.key, PlainHTTP: f.plain, Hosts: f.hosts, Log: log,
	})
	return l, notifier, err
}

// curlTarget is how curl reaches the endpoint.
func curlTarget(l *listen.Listener, cert string) string {
	target := l.URL + mcpserver.Endpoint
	if l.Socket != "" {
		return "--unix-socket '" + l.Socket + "' " + target
	}
	if cert != "" {
		return "--cacert '" + cert + "' " + target
	}
	return target
}
