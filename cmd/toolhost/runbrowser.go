package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// The login of a client opens a page in the browser. Its xdg-open hands the address to this process, which opens it.

const (
	// maxAddress bounds an address that a client wants opened, in bytes.
	maxAddress = 8192
	// openTime bounds how long the request for one may take.
	openTime = 10 * time.Second
)

// serveBrowser makes a directory with an xdg-open in dir, and opens what is handed to it if its host is one of hosts. The port that a
// page leads back to is passed to publish. It ends with ctx.
func serveBrowser(ctx context.Context, dir, self string, hosts []string, publish func(port int)) (bin, socket string, err error) {
	bin, socket = filepath.Join(dir, "bin"), filepath.Join(dir, "open.sock")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return "", "", err
	}
	script := "#!/bin/sh\nexec " + posixQuote(self) + " connect --open \"$1\" " + posixQuote(socket) + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		return "", "", err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", "", err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answerBrowser(conn, hosts, publish)
		}
	}()
	return bin, socket, nil
}

// answerBrowser opens the address that one connection hands over, and answers with what is wrong, or nothing.
func answerBrowser(conn net.Conn, hosts []string, publish func(port int)) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(openTime))
	line, err := bufio.NewReader(io.LimitReader(conn, maxAddress)).ReadString('\n')
	if err == nil {
		line = strings.TrimSuffix(line, "\n")
		if err = checkAddress(line, hosts); err == nil {
			if port := callbackPort(line); port > 0 {
				publish(port)
			}
			err = openAddress(line)
		}
	}
	if err != nil {
		fmt.Fprintln(conn, err)
	}
}

// openAddress opens a web page in the browser of the user. Which program that is the settings of the desktop say, which
// commands must not be able to write.
func openAddress(text string) error {
	if dir, err := os.UserConfigDir(); err != nil || hostprogram.Exposed(dir) {
		return fmt.Errorf("the page is not opened, because commands can write the settings of the browser in %q: "+
			"open it yourself: %s", dir, text)
	}
	cmd := hostprogram.Command(context.Background(), "xdg-open", text)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the page cannot be opened here (%w): open it yourself: %s", err, text)
	}
	go cmd.Wait()
	return nil
}

// checkAddress refuses what is not a page of one of the hosts.
func checkAddress(text string, hosts []string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return errors.New("only addresses that begin with https:// are opened in the browser")
	}
	host := u.Hostname()
	if !slices.ContainsFunc(hosts, func(known string) bool {
		below, wildcard := strings.CutPrefix(known, "*")
		return host == known || wildcard && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below)
	}) {
		return fmt.Errorf("the page of %s is not opened in the browser: it is none of the client's hosts; --allow-host %s adds it", host, host)
	}
	return nil
}

// callbackPort is the port of this machine that a login page leads back to, as its redirect_uri or another parameter says; 0: none.
func callbackPort(text string) int {
	u, _ := url.Parse(text) // it was checked
	for _, values := range u.Query() {
		for _, value := range values {
			back, err := url.Parse(value)
			if err != nil || back.Scheme != "http" {
				continue
			}
			if ip := net.ParseIP(back.Hostname()); back.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
				port, _ := strconv.Atoi(back.Port()) // 0 without one
				return port
			}
		}
	}
	return 0
}

// posixQuote is a word of a shell script.
func posixQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
