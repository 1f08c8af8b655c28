package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

// installFlags are the flags of install and uninstall.
type installFlags struct {
	roots    []string
	http     string
	remote   farFlags
	name     string
	stateDir string
	dryRun   bool
	force    bool
	project  bool
	all      bool
	replace  bool
	adopt    bool
}

func installCommand() *cobra.Command {
	var flags installFlags
	var list, asJSON bool
	cmd := &cobra.Command{
		Use: "install CLIENT", Short: "Add toolhost to an MCP client",
		Long: `Add toolhost to an MCP client: to the user's own file, or with --project to that of the working directory.
Nothing else in the file changes; what it held is kept in the state directory, and the difference is shown.
toolhost uninstall takes it out again.

toolhost install --list names the clients that toolhost knows.

With --replace the client's own file and shell tools are switched off as well, as far as it has settings for that.
What stays is said, and the client is verified if it is here.

With --adopt the client's other servers move to your own settings of toolhost, which then serves their tools under its
rules: see toolhost mcp. toolhost uninstall puts them back.

With --http the client reaches a host that listens already. The token stands in the environment variable
` + clients.TokenVariable + `, which the entry refers to; it is written into the file for a client that knows no such reference,
and then only when the variable is set.`,
		Example: `  toolhost install claude-desktop --root ~/src/project
  toolhost install claude-code --replace
  toolhost install vscode --project
  toolhost install codex --remote ssh://box/srv/project
  toolhost install --all --root ~/src/project
  toolhost install --list`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeClients,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list:
				return listClients(cmd.OutOrStdout(), flags.name, asJSON)
			case flags.all && len(args) > 0:
				return usageError{fmt.Errorf("--all and the client %s exclude each other", args[0])}
			case flags.all:
				return flags.installAll(cmd)
			case len(args) == 0:
				return usageError{fmt.Errorf("which client? One of %s; toolhost install --list shows which are installed",
					clientNames())}
			}
			return flags.install(cmd, args[0])
		},
	}
	flags.add(cmd)
	cmd.Flags().StringArrayVar(&flags.roots, "root", nil,
		"a `DIR` the tools work in; repeatable (default: where the client starts its servers, if that is the project)")
	cmd.Flags().StringVar(&flags.http, "http", "", "reach a host that listens at this `URL` instead of starting one")
	flags.remote.add(cmd.Flags(), "work where toolhost remote finds this `TARGET`, with the roots there")
	cmd.Flags().BoolVar(&flags.replace, "replace", false, "switch off the client's own tools that toolhost has as well")
	cmd.Flags().BoolVar(&flags.adopt, "adopt", false,
		"move the client's other servers to the settings of toolhost, which then serves their tools")
	cmd.Flags().BoolVar(&flags.all, "all", false, "add toolhost to every client that is here")
	cmd.Flags().BoolVar(&list, "list", false, "list the clients, where their files are and whether toolhost is in them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

func uninstallCommand() *cobra.Command {
	var flags installFlags
	cmd := &cobra.Command{
		Use: "uninstall CLIENT", Short: "Remove toolhost from an MCP client",
		Long: `Remove toolhost from an MCP client. If nothing else has changed the file since toolhost was added, it is
afterwards what it was before, to the byte; a file that was made is removed.`,
		Args: exactly(1, "toolhost uninstall claude-code"), ValidArgsFunction: completeClients,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.uninstall(cmd, args[0]) },
	}
	flags.add(cmd)
	return cmd
}

func (f *installFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "toolhost", "the `NAME` of the server in the client's file")
	flags.StringVar(&f.stateDir, "state-dir", "", "the `DIR` that backups are kept in (default: $XDG_STATE_HOME/toolhost)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would change, and change nothing")
	flags.BoolVar(&f.force, "force", false, "replace or remove a server of that name that is not toolhost; write for a "+
		"client that does not seem to be here")
	flags.BoolVar(&f.project, "project", false, "edit the client's file in the working directory")
}

func clientNames() string {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

func completeClients(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name+"\t"+c.Title)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// serverName matches the server names that every client accepts.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// request returns the part of a request that both commands share.
func (f *installFlags) request() (clients.Request, error) {
	if !serverName.MatchString(f.name) {
		return clients.Request{}, usageError{fmt.Errorf("--name %q: up to 64 letters, digits, hyphens and underscores",
			f.name)}
	}
	env, err := clients.System()
	if err != nil {
		return clients.Request{}, err
	}
	state, err := (&hostFlags{stateDir: f.stateDir}).stateDirectory()
	if err != nil {
		return clients.Request{}, err
	}
	r := clients.Request{
		Env: env, Backups: clients.Backups{Dir: filepath.Join(state, "install")},
		Server: thisServer(f.name), DryRun: f.dryRun, Force: f.force,
	}
	if f.project {
		r.Project, err = os.Getwd()
	}
	return r, err
}

// client is the client of a name, and the request for it.
func (f *installFlags) client(name string) (clients.Client, clients.Request, error) {
	client, err := clients.Find(name)
	if err != nil {
		return client, clients.Request{}, usageError{fmt.Errorf("%w%s", err,
			didYouMean(name, strings.Split(clientNames(), ", ")))}
	}
	r, err := f.request()
	return client, r, err
}

// thisServer returns this program under a name in clients' files. The name marks the entry as ours, whatever the
// program is called.
func thisServer(name string) clients.Server {
	self, _ := clients.Self() // without a path, entries are recognized by the name of their program
	return clients.Server{Name: name, Command: self}
}

func (f *installFlags) install(cmd *cobra.Command, name string) error {
	client, r, err := f.client(name)
	if err != nil {
		return err
	}
	if f.replace && f.project {
		return usageError{errors.New("--replace and --project exclude each other: only your own settings switch a client's " +
			"tools off")}
	}
	if f.adopt && (f.project || f.http != "") {
		return usageError{errors.New("--adopt excludes --project, whose servers are a repository's, and --http, whose host " +
			"has settings of its own")}
	}
	if f.http != "" {
		if err = f.listening(client, &r); err != nil {
			err = usageError{err}
		}
	} else if f.remote.name != "" {
		err = f.elsewhere(client, &r)
	} else {
		err = f.local(client, &r)
	}
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !client.Editable() {
		lines, err := client.Lines(r.Server)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\nnext: %s\n", lines, client.Next)
		if note := client.Note(r.Server); note != "" && err == nil {
			_, err = fmt.Fprintf(out, "note: %s", note)
		}
		return err
	}
	report, err := client.Install(cmd.Context(), r)
	if err != nil {
		return err
	}
	if err = printReport(out, client, r, report); err == nil && report.Action != clients.Unchanged {
		err = f.advise(out, client, r)
	}
	if err == nil && f.adopt {
		err = f.adoptServers(cmd, client, r)
	}
	if err == nil && f.replace {
		err = f.replaceOwn(cmd, client, r)
	}
	if err != nil || f.dryRun {
		return err
	}
	return confirmEntry(cmd.Context(), out, client, r)
}

// installAll adds toolhost to every client on this machine that has a file of its own. The error counts the clients
// for which it failed.
func (f *installFlags) installAll(cmd *cobra.Command) error {
	env, err := clients.System()
	if err != nil {
		return err
	}
	here, failed := 0, 0
	for _, c := range clients.All() {
		if s := c.Status(env, thisServer(f.name)); !s.Present || !c.Editable() {
			continue
		}
		if here++; len(f.roots) == 0 && f.http == "" && f.remote.name == "" && !f.project && !c.InProject {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: skipped, because it needs --root DIR\n", c.Title)
			continue
		}
		if err := f.install(cmd, c.Name); err != nil {
			failed++
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", c.Title, sanitized(err.Error()))
		}
	}
	switch {
	case here == 0:
		return errors.New("no client that toolhost supports is installed here: toolhost install --list shows them")
	case failed > 0:
		return fmt.Errorf("toolhost was not added to %d of %d clients", failed, here)
	}
	return nil
}

// local fills in an entry whose client starts a host of its own.
func (f *installFlags) local(client clients.Client, r *clients.Request) error {
	self, err := clients.Self()
	if err != nil {
		return err
	}
	roots := f.roots
	switch {
	case len(roots) == 0 && f.project:
		roots = []string{"."}
	case len(roots) == 0 && !client.InProject:
		return usageError{fmt.Errorf("%s does not start servers in the project you work on: name the directory with "+
			"--root DIR", client.Title)}
	}
	if len(roots) > 0 {
		if roots, err = mcpserver.Roots(roots); err != nil {
			return err
		}
	}
	if err := answering(roots); err != nil {
		return err
	}
	for _, root := range roots {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return errors.Join(err, fmt.Errorf("--root %s is not a directory", root))
		}
	}
	args := clients.Arguments(client, roots...)
	for _, text := range append([]string{self}, args...) {
		if text != strings.ToValidUTF8(text, "") {
			return fmt.Errorf("%q is not valid UTF-8, and a client's file cannot contain it", text)
		}
	}
	r.Server.Command, r.Server.Args = self, args
	return nil
}

// elsewhere fills in an entry whose client starts a relay to a target.
func (f *installFlags) elsewhere(client clients.Client, r *clients.Request) (err error) {
	if f.http != "" {
		return usageError{errors.New("--remote and --http exclude each other")}
	}
	if r.Server.Command, err = clients.Self(); err != nil {
		return err
	}
	if r.Options, err = f.remote.options(); err != nil {
		return err
	}
	r.Remote = f.remote.name
	r.Server.Args = clients.RemoteArguments(client, r.Remote, r.Options, f.roots)
	return nil
}

// listening fills in an entry whose client connects to a running host.
func (f *installFlags) listening(client clients.Client, r *clients.Request) error {
	if len(f.roots) > 0 {
		return errors.New("--root and --http exclude each other: the host that listens has its own roots")
	}
	u, err := url.Parse(f.http)
	switch {
	case err != nil:
		return fmt.Errorf("--http: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("--http %s: not an address such as http://127.0.0.1:8377%s", f.http, mcpserver.Endpoint)
	case u.User != nil:
		return errors.New("--http: an address with a user or password would be in the file in clear")
	case u.Scheme == "http" && !guard.IsLoopback(u.Hostname()) && !f.force:
		return fmt.Errorf("--http %s: the token would cross the network in clear: use https, or --force", f.http)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = mcpserver.Endpoint
	}
	r.Server.URL, r.Server.Command = u.String(), ""
	if client.TokenInClear() {
		if r.Server.Token = os.Getenv(clients.TokenVariable); r.Server.Token == "" {
			return fmt.Errorf("%s cannot take the token from the environment, so its file would contain it in clear: set %s "+
				"for this command if that is what you want, or leave --http out", client.Title, clients.TokenVariable)
		}
	}
	return nil
}

func (f *installFlags) uninstall(cmd *cobra.Command, name string) error {
	client, r, err := f.client(name)
	if err != nil {
		return err
	}
	if r.Project == "" {
		reports, err := client.Restore(cmd.Context(), r)
		for _, report := range reports {
			err = errors.Join(err, printReport(cmd.OutOrStdout(), client, r, report))
		}
		if err != nil {
			return err
		}
	}
	report, err := client.Uninstall(cmd.Context(), r)
	if err == nil {
		err = printReport(cmd.OutOrStdout(), client, r, report)
	}
	if err != nil || r.Project != "" {
		return err
	}
	return f.giveServersBack(cmd, client, r)
}

func listClients(w io.Writer, name string, asJSON bool) error {
	env, err := clients.System()
	if err != nil {
		return err
	}
	all := []clients.Status{}
	for _, c := range clients.All() {
		all = append(all, c.Status(env, thisServer(name)))
	}
	if asJSON {
		return printJSON(w, all)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLIENT\tHERE\tFILE\tTOOLHOST")
	for _, s := range all {
		here, state := "-", string(s.State)
		if s.Present {
			here = "here"
		}
		switch {
		case s.File == "":
			state = "printed"
		case s.Problem != "":
			state += ": " + s.Problem
		case s.Server != "":
			state += ": " + s.Server
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Client, here, s.File, sanitized(state))
	}
	return table.Flush()
}
