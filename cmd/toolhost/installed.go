package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/client"
)

// entryLimit is how long a new entry may take to answer: the time that clients give a server to start. The first start
// of a remote server copies the binary to its host.
const entryLimit = 30 * time.Second

// confirmEntry starts the server of an entry as the client will start it, or calls the one that listens, and has it
// list its tools.
func confirmEntry(ctx context.Context, w io.Writer, client clients.Client, r clients.Request) error {
	ctx, cancel := context.WithTimeoutCause(ctx, entryLimit, fmt.Errorf("it did not answer within %s", entryLimit))
	defer cancel()
	began := time.Now()
	names, err := entryTools(ctx, r)
	switch {
	case err == nil:
		_, err = fmt.Fprintf(w, "works:  %d tools were listed after %s, as %s will ask for them\n", len(names),
			time.Since(began).Round(time.Millisecond), client.Title)
		return err
	case r.Server.URL != "":
		_, err = fmt.Fprintf(w, "note:   no tools were listed at %s: %s; start the server with toolhost http, or correct "+
			"the address or the token\n", r.Server.URL, sanitized(err.Error()))
		return err
	}
	return fmt.Errorf("the entry is written, but its server does not work: %w. See toolhost doctor", err)
}

// entryTools lists the tools of the server of an entry.
func entryTools(ctx context.Context, r clients.Request) (names []string, err error) {
	t, err := reach(ctx, r)
	if err != nil {
		return nil, err
	}
	if err = t.Greet(ctx, Modern, nil); err == nil {
		names, err = t.Tools(ctx)
	}
	err = t.close(err)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return names, err
}

// reach starts the server of an entry, or finds the one that listens.
func reach(ctx context.Context, r clients.Request) (*talk, error) {
	if r.Server.URL != "" {
		token := cmp.Or(r.Server.Token, os.Getenv(clients.TokenVariable))
		if token == "" {
			raw, err := os.ReadFile(filepath.Join(filepath.Dir(r.Backups.Dir), "token"))
			if err != nil {
				return nil, fmt.Errorf("%s is not set, and there is no token of a server on this machine: %w",
					clients.TokenVariable, err)
			}
			token = strings.TrimSpace(string(raw))
		}
		c, err := client.NewHTTP(r.Server.URL, token, nil)
		return &talk{c, &complaint{}, func() error { return nil }}, err
	}
	dir, err := os.Getwd() // it is also the project for an entry of a project
	if err != nil {
		return nil, err
	}
	return startServer(ctx, dir, nil, r.Server.Command, r.Server.Args...)
}

// keptTools returns which tools of the client are not subject to the rules, and what limits them.
func keptTools(client clients.Client) string {
	var ways []string
	if client.Replaces != nil {
		ways = append(ways, fmt.Sprintf("toolhost install %s --replace switches them off", client.Name))
	}
	if client.Runs != nil {
		ways = append(ways, fmt.Sprintf("toolhost run -- %s holds them too", client.Program))
	}
	if len(ways) == 0 {
		return "tools that " + client.Title + " has of its own do not obey these rules"
	}
	return fmt.Sprintf("%s has tools of its own, which can still read .env: %s", client.Title, strings.Join(ways, ", "))
}

// printReport prints what was done.
func printReport(w io.Writer, client clients.Client, r clients.Request, report clients.Report) error {
	if report.Action == clients.Unchanged {
		_, err := fmt.Fprintf(w, "%s: nothing to do in %s\n", client.Title, sanitized(report.File))
		return err
	}
	preposition := map[clients.Action]string{clients.Added: "to", clients.Removed: "from",
		clients.Updated: "in"}[report.Action]
	what, done := r.Server.Name, string(report.Action)
	if report.Replaced {
		what, done = "its own tools", map[clients.Action]string{clients.Updated: "switched off",
			clients.Removed: "switched on again"}[report.Action]
		preposition = "in"
	}
	fmt.Fprintf(w, "%s: %s %s%s %s %s\n\n%s\n", client.Title, what, would(r.DryRun), done, preposition, sanitized(report.File),
		mcpserver.Sanitize(report.Diff))
	if report.Ran != nil {
		fmt.Fprintf(w, "by:     %s\n", sanitized(strings.Join(report.Ran, " ")))
	}
	if report.Backup != "" {
		fmt.Fprintf(w, "backup: %s\n", sanitized(report.Backup))
	}
	if r.DryRun {
		return nil
	}
	next := client.Next
	if report.Action == clients.Removed {
		next = "restart " + client.Title + " if it runs"
	}
	_, err := fmt.Fprintf(w, "next:   %s\n", next)
	return err
}

// advise prints what the user should know of the entry.
func (f *installFlags) advise(w io.Writer, client clients.Client, r clients.Request) (err error) {
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	switch {
	case r.Server.Token != "":
		say("note:   the token stands in the file in clear\n")
	case r.Server.URL != "":
		say("        and start it with the token: export %s=\"$(cat %s)\"\n", clients.TokenVariable,
			shellQuote(filepath.Join(filepath.Dir(r.Backups.Dir), "token")))
	}
	if strings.Contains(filepath.ToSlash(r.Server.Command), "/_npx/") {
		say("note:   %s lies in npm's cache, which npm may empty: install the package first, then repeat this command\n",
			sanitized(r.Server.Command))
	}
	if f.project && r.Server.Command != "" {
		say("note:   the file names paths of this machine: think before you commit it\n")
	}
	for i, arg := range r.Server.Args {
		if i > 0 && r.Server.Args[i-1] == "--root" && isBelow(r.Server.Command, arg) {
			say("note:   %s lies in the root %s, where an agent could replace it\n", sanitized(r.Server.Command),
				sanitized(arg))
		}
	}
	if !f.replace && !f.dryRun {
		say("keeps:  %s\n", keptTools(client))
	}
	return err
}
