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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hostprogram"
)

// The login of a client opens a page in the browser. The xdg-open of the client sends the address to this process,
// which opens the page.

const (
	// maxAddress bounds an address that a client wants opened, in bytes.
	maxAddress = 8192
	// openTime bounds how long the request for one may take.
	openTime = 10 * time.Second
	// openEvery is the least time between two pages, and maxOpened how many a run may open: each one takes the user's
	// screen.
	openEvery = 2 * time.Second
	maxOpened = 10
)

// A pageOpener opens pages for one client.
type pageOpener struct {
	hosts   []string             // hosts whose pages are opened
	publish func(port int) error // publishes the port that a page redirects to
	open    func(address string) error
	now     func() time.Time

	opened int
	last   time.Time
}

// serveBrowser creates a directory with an xdg-open in dir, and opens the addresses that this program sends, until
// ctx is done.
func serveBrowser(ctx context.Context, dir, self string, p *pageOpener) (bin, socket string, err error) {
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
			p.answer(conn)
		}
	}()
	return bin, socket, nil
}

// answer opens the address that a connection sends, and answers with an error text, or nothing.
func (p *pageOpener) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(openTime))
	line, err := bufio.NewReader(io.LimitReader(conn, maxAddress)).ReadString('\n')
	if err == nil {
		err = p.page(strings.TrimSuffix(line, "\n"))
	}
	if err != nil {
		fmt.Fprintln(conn, err)
	}
}

// page opens a page, within the limits of a run.
func (p *pageOpener) page(address string) error {
	if err := checkAddress(address, p.hosts); err != nil {
		return err
	}
	now := p.now()
	switch {
	case p.opened >= maxOpened:
		return fmt.Errorf("the page is not opened: this run has opened %d. Open it yourself: %s", maxOpened, address)
	case p.opened > 0 && now.Sub(p.last) < openEvery:
		return fmt.Errorf("the page is not opened: another one was, less than %v ago. Try again, or open it yourself: %s",
			openEvery, address)
	}
	p.opened, p.last = p.opened+1, now
	if port := callbackPort(address); port > 0 {
		if err := p.publish(port); err != nil {
			return fmt.Errorf("the page is not opened, since its login could not return: %w", err)
		}
	}
	return p.open(address)
}

// openAddress opens a web page in the user's browser. The settings of the desktop select the browser, so commands
// must not be able to write these.
func openAddress(text string) error {
	dir, err := os.UserConfigDir()
	if err != nil || hostprogram.Exposed(dir) {
		return fmt.Errorf("the page is not opened, because commands can write the settings of the browser in %q: "+
			"open it yourself: %s", dir, text)
	}
	for _, command := range openers(runtime.GOOS, os.Getenv("BROWSER"), text) {
		cmd := hostprogram.Command(context.Background(), command[0], command[1:]...)
		if err = cmd.Start(); err == nil {
			go cmd.Wait()
			return nil
		}
	}
	return fmt.Errorf("the page cannot be opened here (%w): open it yourself: %s", err, text)
}

// openers returns the commands that open a page, in order of preference. On Unix these are the programs of $BROWSER,
// a list separated by colons, except those that tools or commands can write.
func openers(system, browser, address string) (all [][]string) {
	switch system {
	case "darwin":
		return [][]string{{"open", address}}
	case "windows":
		return [][]string{{"rundll32", "url.dll,FileProtocolHandler", address}}
	}
	for command := range strings.SplitSeq(browser, ":") {
		if len(hostprogram.Clean([]string{"BROWSER=" + strings.ReplaceAll(command, "%s", "")})) == 0 {
			continue
		}
		words := strings.Fields(command)
		if !strings.Contains(command, "%s") {
			words = append(words, "%s")
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "%s", address)
		}
		if len(words) > 1 {
			all = append(all, words)
		}
	}
	return append(all, []string{"xdg-open", address})
}

// checkAddress returns an error for an address that is not a page of one of the hosts.
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
		return fmt.Errorf("the page of %s is not opened in the browser: it is none of the client's hosts; --allow-host %s "+
			"adds it", host, host)
	}
	return nil
}

// callbackPort returns the port of this machine that a login page redirects to, according to its redirect_uri or
// another parameter; 0 if there is none.
func callbackPort(text string) int {
	u, _ := url.Parse(text) // already checked
	for _, values := range u.Query() {
		for _, value := range values {
			back, err := url.Parse(value)
			if err != nil || back.Scheme != "http" {
				continue
			}
			if guard.IsLoopback(back.Hostname()) {
				port, _ := strconv.Atoi(back.Port()) // 0 without one
				return port
			}
		}
	}
	return 0
}

// posixQuote quotes a word for a shell script.
func posixQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
