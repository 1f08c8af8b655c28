package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"toolhost/mcpserver"
)

func stdioCommand() *cobra.Command {
	var flags hostFlags
	cmd := &cobra.Command{
		Use: "stdio [flags] [ROOT]...", Short: "Serve one client over stdin and stdout",
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(args, func(host *mcpserver.Host) error {
				server, err := mcpserver.NewServer(host)
				if err != nil {
					return err
				}
				return server.ServeStdio(cmd.Context(), pollable(os.Stdin), os.Stdout, mcpserver.ParentGone(cmd.Context()))
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func httpCommand() *cobra.Command {
	var flags hostFlags
	var listen, tokenFile string
	cmd := &cobra.Command{
		Use: "http [flags] [ROOT]...", Short: "Serve clients over streamable HTTP on a loopback address",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := loopback(listen); err != nil {
				return err
			}
			cfg, err := flags.config(args, true)
			if err != nil {
				return err
			}
			host, err := mcpserver.Open(cfg)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			token, file, made, err := host.Token(tokenFile)
			if err != nil {
				return err
			}
			server, err := mcpserver.NewServer(host)
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			announce(l.Addr().String(), token, file, made, cfg.Roots)
			return server.ServeHTTP(cmd.Context(), l, mcpserver.HTTPConfig{Token: token, Principal: mcpserver.TokenPrincipal})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8377", "the loopback `ADDRESS` to listen on; port 0 picks one")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "the `FILE` that holds the bearer token (default: one is made and kept in the state directory)")
	return cmd
}

// loopback refuses addresses that others can reach: there is no encryption here yet.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() || host == "localhost" {
		return nil
	}
	return fmt.Errorf("--listen %s: only loopback addresses such as 127.0.0.1:8377 are served, because tokens and files would cross the network in the clear; put a TLS proxy in front", address)
}

// announce tells on stderr how to reach the server. A token that was just made is shown this once.
func announce(address, token, file string, made bool, roots []string) {
	url := "http://" + address + mcpserver.Endpoint
	fmt.Fprintf(os.Stderr, "listening on %s\nserving %s\n", url, strings.Join(roots, ", "))
	if made {
		fmt.Fprintf(os.Stderr, "token %s (kept in %s)\n", token, file)
	} else {
		token = "$(cat '" + file + "')"
		fmt.Fprintf(os.Stderr, "the token is in %s\n", file)
	}
	fmt.Fprintf(os.Stderr, "\ntry it:\n\n%s\n\n", mcpserver.CurlLine(url, token))
}
