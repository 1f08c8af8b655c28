package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard/credential"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// The lists of masked credentials.
const (
	maskedVars  = "sandbox.credentials.envVars"
	maskedFiles = "sandbox.credentials.files"
	sshLogins   = "sandbox.credentials.sshAgent"
)

func credentialCommand() *cobra.Command {
	var flags hostFlags
	cmd := &cobra.Command{
		Use: "credential", Short: "Let commands use tokens that they never have",
		Long: `Let commands use tokens that they never have. A command gets a sentinel in the place of the token, and the
host puts the token into its requests to the hosts of the service, over TLS. The entries are kept for the workspace in
your own settings; toolhost rules lists them, too.`,
	}
	flags.addRoots(cmd.PersistentFlags(), "the `DIR` of the workspace; repeatable (default: the working directory)")
	flags.addState(cmd.PersistentFlags())
	remove := &cobra.Command{
		Use: "remove NAME", Short: "No longer let commands use a token",
		Args:    exactly(1, "toolhost credential remove GITHUB_TOKEN"),
		Example: "  toolhost credential remove GITHUB_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			var hosts []string
			if err := flags.eachMask(args, func(list string, m settings.Mask) error {
				if err := settings.Remove(m.Entry, list); err != nil {
					return err
				}
				hosts = append(hosts, m.InjectHosts...)
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed: %s, from %s\n", sanitized(m.Entry.Text),
					sanitized(m.Entry.Where()))
				return err
			}); err != nil {
				return err
			}
			return flags.tellAllowed(cmd.OutOrStdout(), hosts)
		},
	}
	test := &cobra.Command{
		Use: "test NAME", Short: "Send a harmless request with a token",
		Args: exactly(1, "toolhost credential test GITHUB_TOKEN"), Example: "  toolhost credential test GITHUB_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.eachMask(args, func(list string, m settings.Mask) error {
				if list != maskedVars {
					return fmt.Errorf("%s has no harmless request: run a command that uses it", m.Entry.Text)
				}
				return testMask(cmd.Context(), cmd.OutOrStdout(), m)
			})
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List the tokens that commands use, and where they go", Args: cobra.NoArgs,
		Example: "  toolhost credential list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			empty := true
			if err := flags.eachMask(nil, func(list string, m settings.Mask) error {
				empty = false
				_, err := fmt.Fprintf(table, "%s\t%s\t→ %s\t%s\n", sanitized(m.Entry.Text),
					sanitized(sourceOf(list, m)), sanitized(strings.Join(m.InjectHosts,
						", ")), sanitized(m.Entry.Where()))
				return err
			}); err != nil {
				return err
			}
			if empty {
				fmt.Fprintln(table, "commands use no token: toolhost credential add SERVICE adds one")
			}
			return table.Flush()
		},
	}
	cmd.AddCommand(credentialAddCommand(&flags), list, remove, test)
	return cmd
}

func credentialAddCommand(flags *hostFlags) *cobra.Command {
	var env, file, command, login string
	var hosts, names []string
	var untested bool
	for _, p := range credential.Presets() {
		names = append(names, p.Name)
	}
	cmd := &cobra.Command{
		Use: "add [SERVICE]", Short: "Let commands use a token",
		Long: "Let commands use a token. The services are " + strings.Join(names, ", ") + `; for another one name --env or --file, and --inject-host.
The hosts that get the token become allowed hosts. Then a harmless request shows whether the service knows the token.`,
		Example: "  toolhost credential add github --command 'gh auth token'\n  toolhost credential add npm --file " +
			"~/.npmrc\n  toolhost credential add --env DEPLOY_KEY --inject-host deploy.example.com\n  toolhost credential add " +
			"--ssh git@github.com",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if login != "" {
				return flags.permitLogin(cmd.OutOrStdout(), login)
			}
			entry := map[string]any{"mode": "mask"}
			if len(args) > 0 {
				at := slices.Index(names, args[0])
				if at < 0 {
					return usageError{fmt.Errorf("no service %s is known%s; name --env and --inject-host", args[0],
						didYouMean(args[0], names))}
				}
				p := credential.Presets()[at]
				env = cmp.Or(env, p.Variable)
				hosts = append(hosts, p.Hosts...)
			}
			list := maskedVars
			switch {
			case file != "" && command != "":
				return usageError{fmt.Errorf("--file and --command: name one or the other")}
			case len(hosts) == 0:
				return usageError{fmt.Errorf("name a service, or the hosts that get the token by --inject-host")}
			case file != "" && credential.HasReader(file):
				list = maskedFiles
				entry["path"] = file
				if n, err := credential.Count(file); err != nil {
					return err
				} else if n == 0 {
					return fmt.Errorf("no token is found in %s: log in with the program of the service first", file)
				}
			case env == "":
				return usageError{fmt.Errorf("name the variable by --env")}
			default:
				entry["name"] = env
				for key, value := range map[string]string{"file": file, "command": command} {
					if value != "" {
						entry[key] = value
					}
				}
			}
			entry["injectHosts"] = hosts
			counts, err := flags.addMask(cmd.OutOrStdout(), list, entry, hosts)
			if err != nil || !counts || list != maskedVars || untested {
				return err
			}
			return tryMask(cmd, settings.Mask{Entry: settings.Entry{Text: env}, InjectHosts: hosts, File: file,
				Command: command})
		},
	}
	cmd.Flags().StringVar(&env, "env", "", "the `NAME` of the variable that holds the token (default: that of the "+
		"service)")
	cmd.Flags().StringVar(&file, "file", "", "the `PATH` of a file such as ~/.npmrc, of which commands read a copy, or "+
		"of one that holds nothing but the token")
	cmd.Flags().StringVar(&command, "command", "",
		"the `COMMAND` that writes the token, which the host runs when it is needed")
	cmd.Flags().StringArrayVar(&hosts, "inject-host", nil,
		"a `HOST` that gets the token; repeatable (default: those of the service)")
	cmd.Flags().StringVar(&login, "ssh", "", "a `USER@HOST` as whom commands log in by SSH with the keys of your agent, "+
		"and nowhere else")
	cmd.Flags().BoolVar(&untested, "no-test", false, "send no request")
	return cmd
}

// addMask adds a mask to a list, with its hosts. It reports false if another entry denies what the mask names.
func (f *hostFlags) addMask(w io.Writer, list string, entry map[string]any, hosts []string) (counts bool, err error) {
	text, err := json.Marshal(entry)
	if err != nil {
		return false, err
	}
	if err := settings.CheckMask(list, string(text)); err != nil { // before its hosts are allowed
		return false, usageError{err}
	}
	if err := f.permit(w, settings.ListHosts, hosts); err != nil {
		return false, err
	}
	if err := f.permit(w, list, []string{string(text)}); err != nil {
		return false, err
	}
	_, set, err := f.loadRules(nil)
	if err != nil {
		return false, err
	}
	entries := set.Sandbox.Credentials.EnvVars
	if list == maskedFiles {
		entries = set.Sandbox.Credentials.Files
	}
	for _, e := range entries {
		if e.Object == "" && e.Text == cmp.Or(entry["name"], entry["path"]) {
			_, err := fmt.Fprintf(w, "it has no effect: %s denies it\n", sanitized(e.Where()))
			return false, err
		}
	}
	return true, nil
}

// tellAllowed names the hosts of removed masks that stay allowed although no other mask needs them. Whether they were
// allowed by addMask or by the person is not known.
func (f *hostFlags) tellAllowed(w io.Writer, hosts []string) error {
	_, set, err := f.loadRules(nil)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	if err := f.eachMask(nil, func(_ string, m settings.Mask) error {
		for _, host := range m.InjectHosts {
			needed[host] = true
		}
		return nil
	}); err != nil {
		return err
	}
	for _, e := range set.Sandbox.Network.AllowedDomains {
		if slices.Contains(hosts, e.Text) && !needed[e.Text] {
			needed[e.Text] = true // one line each
			if _, err := fmt.Fprintf(w, "commands still reach %s, which you may have allowed yourself: toolhost rules --remove "+
				"%[1]s ends that\n", sanitized(e.Text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryMask tests a new mask. A failure is not an error, because the token may be set later.
func tryMask(cmd *cobra.Command, m settings.Mask) error {
	err := testMask(cmd.Context(), cmd.OutOrStdout(), m)
	if err != nil {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "it does not work yet: %s\n", sanitized(err.Error()))
	}
	return err
}

// permitLogin lets commands log in by SSH.
func (f *hostFlags) permitLogin(w io.Writer, text string) error {
	d, err := sshagent.ParseDestination(text)
	if err != nil {
		return usageError{err}
	}
	return errors.Join(f.permit(w, settings.ListHosts, []string{d.Address()}), f.permit(w, sshLogins, []string{text}))
}

// eachMask calls do for the masks with some names; without names for all.
func (f *hostFlags) eachMask(names []string, do func(list string, m settings.Mask) error) error {
	_, set, err := f.loadRules(nil)
	if err != nil {
		return err
	}
	var known []string
	found := false
	vars, files := set.Sandbox.Credentials.MaskedVars, set.Sandbox.Credentials.MaskedFiles
	all := slices.Concat(vars, files)
	for _, e := range set.Sandbox.Credentials.SSHAgent {
		d, _ := sshagent.ParseDestination(e.Text) // permitLogin has checked the entries
		all = append(all, settings.Mask{Entry: e, InjectHosts: []string{d.Address()}})
	}
	for i, m := range all {
		list := maskedVars
		if i >= len(vars)+len(files) {
			list = sshLogins
		} else if i >= len(vars) {
			list = maskedFiles
		}
		known = append(known, m.Entry.Text)
		if names != nil && !slices.Contains(names, m.Entry.Text) {
			continue
		}
		found = true
		if err := do(list, m); err != nil {
			return err
		}
	}
	if names != nil && !found {
		return fmt.Errorf("%s is not masked here%s; toolhost credential list shows what is", names[0],
			didYouMean(names[0], known))
	}
	return nil
}

// sourceOf says where a value is.
func sourceOf(list string, m settings.Mask) string {
	switch {
	case m.Command != "":
		return "command " + m.Command
	case m.File != "":
		return "file " + m.File
	case list == sshLogins:
		return "SSH agent"
	case list == maskedFiles:
		return "file"
	}
	return "environment"
}

// testMask sends the harmless request of the service of a mask.
func testMask(ctx context.Context, w io.Writer, m settings.Mask) error {
	value, err := credential.Value(ctx, m.Entry.Text, m.Command, m.File, os.Getenv(m.Entry.Text))
	if err != nil {
		return fmt.Errorf("%s has no value: %w", m.Entry.Text, err)
	}
	p, ok := credential.For(m.InjectHosts)
	if !ok || p.URL == "" {
		_, err := fmt.Fprintf(w, "%s has a value; no harmless request to %s is known\n", sanitized(m.Entry.Text),
			sanitized(strings.Join(m.InjectHosts, ", ")))
		return err
	}
	fmt.Fprintf(w, "GET %s with %s …\n", p.URL, sanitized(m.Entry.Text))
	if err := p.Test(ctx, http.DefaultClient, value); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "the service knows the token")
	return err
}
