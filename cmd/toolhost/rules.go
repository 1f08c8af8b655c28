package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

// loadRules reads the settings as a host with these flags would.
func (f *hostFlags) loadRules(names []string) (settings.Config, *settings.Settings, error) {
	cfg, err := f.config(names, false)
	if err != nil {
		return settings.Config{}, nil, err
	}
	where, err := mcpserver.SettingsConfig(cfg)
	if err != nil {
		return settings.Config{}, nil, err
	}
	return where, settings.Load(where), nil
}

func rulesCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	var remove string
	cmd := &cobra.Command{
		Use: "rules [flags] [ROOT]...", Short: "List the rules in force, with where they stand and what is wrong with them",
		Long: `List the rules in force, with where they stand and what is wrong with them, how each deny and ask is held on
this machine (by the host, the kernel, when programs start, or by the text of commands), and how each hook runs. The
exit status is 2 when a settings file cannot be parsed, which refuses every call until it is corrected.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			where, set, err := flags.loadRules(args)
			if err != nil {
				return err
			}
			policy, err := guard.New(guard.Config{Roots: where.Roots, ExplicitRoots: true, Home: where.Home,
				StateDir: where.StateDir, Settings: set})
			if err != nil {
				return err
			}
			warnings := policy.Warnings()
			for _, d := range policy.SharedDenies(where, flags.toolNames()) {
				warnings = append(warnings, d.String()+"; "+d.Remedy())
			}
			list := rulesOf(set, warnings)
			if remove != "" {
				return removeRule(cmd.OutOrStdout(), list, remove)
			}
			list.Warnings = append(list.Warnings, guard.BuiltinRules(set)...)
			if err := flags.hold(args, &list); err != nil {
				list.Warnings = append(list.Warnings, fmt.Sprintf("how rules are held here is not known: %v", err))
			}
			list.Warnings = append(list.Warnings, heldLines(where.StateDir, policy.Commands().Settled()...)...)
			list.Hooks = hooksOf(set, policy)
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), list)
			} else {
				err = printRules(cmd.OutOrStdout(), list)
			}
			if err == nil && len(set.Broken) > 0 {
				err = errUnparsed
			}
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&remove, "remove", "", "take back the rule with this `NUMBER` in the list, or this text, from "+
		"your own settings")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of settings files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := json.MarshalIndent(settings.Schema(), "", "  ")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
			return err
		},
	}
}

// A listedRule is one rule as it is listed.
type listedRule struct {
	Number int    `json:"number,omitempty"`
	Action string `json:"action"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Where  string `json:"where"`
	// Held says what enforces a deny or ask rule on this machine.
	Held string `json:"held,omitempty"`

	list  string // the settings key of its list
	entry settings.Entry
}

// A listedHook is one hook with a command as it is listed, and how the command runs.
type listedHook struct {
	Event     string   `json:"event"`
	Command   string   `json:"command"`
	Where     string   `json:"where"`
	Contained bool     `json:"contained"`
	Warning   string   `json:"warning,omitempty"`
	Held      []string `json:"held,omitempty"`
}

// hooksOf lists the hooks that run a command, in the order of their events.
func hooksOf(set *settings.Settings, policy *guard.Policy) (list []listedHook) {
	for _, event := range slices.Sorted(maps.Keys(set.Hooks)) {
		for _, group := range set.Hooks[event] {
			for _, h := range group.Hooks {
				if h.Type != "command" {
					continue
				}
				held, depends := policy.HookFiles(h)
				text := strings.Join(append([]string{h.Command}, h.Args...), " ")
				one := listedHook{Event: event, Command: text, Where: group.Source.Where(),
					Contained: !h.Uncontained, Held: held}
				if depends != nil {
					one.Warning = depends.Error()
				}
				list = append(list, one)
			}
		}
	}
	return list
}

// how describes how the hook runs.
func (h listedHook) how() string {
	text := `outside the sandbox, with your rights ("contained": false)`
	if h.Contained {
		text = "contained"
	}
	if len(h.Held) > 0 {
		text += "; holds " + strings.Join(h.Held, ", ")
	}
	if h.Warning != "" {
		text += "; " + h.Warning
	}
	return text
}

// A ruleList is the output of `toolhost rules --json`.
type ruleList struct {
	Mode     string       `json:"mode"`
	Rules    []listedRule `json:"rules"`
	Hooks    []listedHook `json:"hooks,omitempty"`
	LeftOut  []listedRule `json:"left_out_until_trusted,omitempty"`
	Warnings []string     `json:"warnings,omitempty"`
	Broken   []string     `json:"broken,omitempty"`
}

// rulesOf lists the rules of set. The warnings are those about the settings and about the rules compiled from them.
func rulesOf(set *settings.Settings, warnings []string) ruleList {
	list := ruleList{Mode: set.DefaultMode, Rules: []listedRule{}, Warnings: warnings}
	for _, l := range []struct {
		action, key string
		entries     []settings.Entry
	}{
		{"deny", "permissions.deny", set.Deny}, {"ask", "permissions.ask", set.Ask}, {"allow", "permissions.allow", set.Allow},
		{"native deny", "permissions.deny", set.NativeDeny}, {"native tool", "", set.Native},
		{"directory", "permissions.additionalDirectories", set.AdditionalDirectories}, {"allow host", settings.ListHosts, set.Sandbox.Network.AllowedDomains},
		{"allow program", settings.ListPrograms, set.Sandbox.Network.Programs}, {"log in", sshLogins, set.Sandbox.Credentials.SSHAgent},
	} {
		for _, e := range l.entries {
			list.Rules = append(list.Rules, listedRule{Number: len(list.Rules) + 1, Action: l.action, Rule: e.Text,
				Source: e.Kind.String(), Where: e.Where(), list: l.key, entry: e})
		}
	}
	for _, l := range []struct {
		key   string
		masks []settings.Mask
	}{{maskedVars, set.Sandbox.Credentials.MaskedVars}, {maskedFiles, set.Sandbox.Credentials.MaskedFiles}} {
		for _, m := range l.masks {
			list.Rules = append(list.Rules, listedRule{Number: len(list.Rules) + 1, Action: "mask", Rule: m.Entry.Text + " → " +
				strings.Join(m.InjectHosts, ", "),
				Source: m.Entry.Kind.String(), Where: m.Entry.Where(), list: l.key, entry: m.Entry})
		}
	}
	for _, e := range set.Untrusted {
		list.LeftOut = append(list.LeftOut, listedRule{Action: "untrusted", Rule: e.Text, Source: e.Kind.String(),
			Where: e.Where()})
	}
	for _, err := range set.Broken {
		list.Broken = append(list.Broken, err.Error())
	}
	return list
}

// hold sets on each rule what enforces it in a host with these flags, and adds the warnings that need the tools of
// the host.
func (f *hostFlags) hold(names []string, list *ruleList) error {
	cfg, err := f.config(names, false)
	if err != nil {
		return err
	}
	cfg.Log = slog.New(slog.DiscardHandler) // its messages are warnings of the list
	host, err := mcpserver.Open(cfg)
	if err != nil {
		return err
	}
	for i, r := range list.Rules {
		list.Rules[i].Held = host.Operator().Holds(r.Action, r.Rule)
	}
	for _, text := range host.Operator().RuleWarnings() {
		if !slices.Contains(list.Warnings, text) {
			list.Warnings = append(list.Warnings, text)
		}
	}
	return host.Close()
}

func printRules(w io.Writer, list ruleList) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\t%s\n", coloured(w, ordinary, "mode"), list.Mode)
	for _, r := range list.Rules {
		held := ""
		if r.Held != "" {
			held = "\theld: " + r.Held
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s%s\n", r.Number, coloured(w, cmp.Or(actionColours[r.Action], ordinary),
			r.Action), sanitized(r.Rule), r.Source, sanitized(r.Where), held)
	}
	for _, h := range list.Hooks {
		fmt.Fprintf(table, "\t%s\t%s\t%s\t%s\n", coloured(w, ordinary, "hook "+h.Event), sanitized(h.Command),
			sanitized(h.how()), sanitized(h.Where))
	}
	for _, r := range list.LeftOut {
		fmt.Fprintf(table, "\t%s\t%s\t%s\t%s\n", coloured(w, ordinary, "left out"), sanitized(r.Rule), r.Source,
			sanitized(r.Where))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(list.LeftOut) > 0 {
		fmt.Fprintln(w, "\nWhat is left out counts once the workspace is trusted: see toolhost trust.")
	}
	for _, text := range list.Warnings {
		fmt.Fprintln(w, "warning:", sanitized(text))
	}
	for _, text := range list.Broken {
		if _, err := fmt.Fprintln(w, "error:", sanitized(text)); err != nil {
			return err
		}
	}
	return nil
}

func trustCommand() *cobra.Command {
	var flags hostFlags
	var list, revoke, yes, asJSON bool
	cmd := &cobra.Command{
		Use: "trust [flags] [DIR | FILE]...", Short: "Let the settings files in a workspace allow things, not only " +
			"forbid them",
		Long: `Let the settings files in a workspace allow things, not only forbid them. What they would allow is shown first.
Trust holds for exactly that content: when a pull brings a new rule or hook, it must be given anew.

With a FILE of the workspace that a server with "sandbox": false, a headersHelper or a command of web.search names:
let the host run the file outside of the sandbox, as it is now. A file that has changed is not run before.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, files := splitFiles(args)
			where, _, err := flags.loadRules(dirs)
			if err != nil {
				return err
			}
			switch {
			case len(files) > 0 && (len(dirs) > 0 || list || revoke):
				return usageError{errors.New("a file is trusted alone, without directories, --list and --revoke")}
			case len(files) > 0:
				where.Roots = files
				return eachRoot(where, func(file string) error { return trust(cmd, where, file, yes) })
			case list:
				return listTrust(cmd.OutOrStdout(), where, asJSON)
			case revoke:
				return eachRoot(where, func(root string) error { return settings.Revoke(where, root) })
			}
			return eachRoot(where, func(root string) error { return trust(cmd, where, root, yes) })
		},
	}
	flags.addState(cmd.Flags())
	cmd.Flags().BoolVar(&list, "list", false, "list the workspaces that are trusted")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "no longer trust the workspace")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// splitFiles separates the files among the arguments.
func splitFiles(args []string) (dirs, files []string) {
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			files = append(files, arg)
		} else {
			dirs = append(dirs, arg)
		}
	}
	return dirs, files
}

func eachRoot(where settings.Config, do func(root string) error) error {
	for _, root := range where.Roots {
		if err := do(root); err != nil {
			return err
		}
	}
	return nil
}

// A trustedRoot is a workspace in the output of `toolhost trust --list --json`.
type trustedRoot struct {
	Root  string    `json:"root"`
	Since time.Time `json:"since"`
}

func listTrust(w io.Writer, where settings.Config, asJSON bool) error {
	trusted, err := settings.ListTrusted(where)
	if err != nil {
		return err
	}
	if asJSON {
		list := []trustedRoot{}
		for _, t := range trusted {
			list = append(list, trustedRoot{t.Root, t.Since})
		}
		return printJSON(w, list)
	}
	if len(trusted) == 0 {
		_, err = fmt.Fprintln(w, "no workspace is trusted: toolhost trust DIR shows what one would allow")
	}
	for _, t := range trusted {
		if _, err := fmt.Fprintf(w, "%s  since %s\n", sanitized(t.Root),
			t.Since.Local().Format("2006-01-02 15:04")); err != nil {
			return err
		}
	}
	return err
}

// showLoosening lists what the settings files of a workspace would allow.
func showLoosening(out io.Writer, root string, entries []settings.Entry) {
	fmt.Fprintf(out, "The settings files in %s would allow:\n", sanitized(root))
	for _, e := range entries {
		fmt.Fprintf(out, "  %s  (%s)\n", sanitized(e.Text), sanitized(e.Where()))
	}
	if len(entries) == 0 {
		fmt.Fprintln(out, "  nothing")
	}
}

// shownDigest is how much of a digest is shown.
const shownDigest = 16

// trust shows what a workspace would be allowed, or which file would be run, and then trusts exactly the content that
// it showed.
func trust(cmd *cobra.Command, where settings.Config, root string, yes bool) error {
	inspect := settings.Inspect
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		inspect = settings.InspectFile
	}
	review, err := inspect(where, root)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if review.File {
		fmt.Fprintf(out, "The host would run %s outside of the sandbox, as it is now.\n", sanitized(review.Root))
	} else {
		showLoosening(out, review.Root, review.Entries)
		if len(review.Entries) > 0 {
			fmt.Fprintf(out, "In CI, --trust-workspace=%s trusts exactly that.\n", review.Digest[:shownDigest])
		}
	}
	if !yes {
		fmt.Fprint(out, "Trust it? [y/N] ")
		var answer string
		if _, err := fmt.Fscanln(cmd.InOrStdin(), &answer); err != nil && !isTerminal(os.Stdin) {
			return fmt.Errorf("%s is not trusted, because there is no answer: add --yes after you have read the list",
				review.Root)
		} else if answer != "y" && answer != "yes" {
			return fmt.Errorf("%s is not trusted", review.Root)
		}
	}
	if err := review.Trust(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s is trusted.\n", sanitized(review.Root))
	return err
}
