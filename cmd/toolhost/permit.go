package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/hostpreset"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
)

// personOnly are the commands that change what a caller may do, or what it did: only a person may run them.
var personOnly = []string{
	"allow", "allow-host", "ask", "credential add", "credential remove", "deny", "install", "keep", "mcp accept",
	"mcp add", "mcp allow-host", "mcp login", "mcp logout", "mcp remove", "mode", "rewind", "rules", "token add",
	"token revoke", "trust", "undo", "uninstall",
}

// refuseInCall refuses a command that only a person may run, if this process was started by a call.
func refuseInCall(cmd *cobra.Command) error {
	name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if !slices.Contains(personOnly, name) || !builtin.InCall() {
		return nil
	}
	if list := cmd.Flags().Lookup("list"); list != nil && list.Value.String() == "true" || name == "rules" &&
		!cmd.Flags().Changed("remove") {
		return nil
	}
	return fmt.Errorf("toolhost %s is for a person: a call of an agent has started this process (its RLIMIT_LOCKS or its "+
		"environment says so), and no call can change what calls may do or did. Run it in a terminal of your own", name)
}

// permitCommands add rules to the user's own settings for a workspace.
func permitCommands() (all []*cobra.Command) {
	for _, c := range []struct{ use, short, list, example string }{
		{"allow RULE", "Let calls that a rule names run unasked", "permissions.allow", "toolhost allow 'Bash(npm test *)'"},
		{"ask RULE", "Require a person's approval of calls that a rule names", "permissions.ask", "toolhost ask 'Bash(git push *)' --root ~/src/project"},
		{"deny RULE", "Refuse calls that a rule names", "permissions.deny", "toolhost deny 'Read(.env)'"},
		{"allow-host HOST", "Let commands in the sandbox reach a host of the network", settings.ListHosts, "toolhost allow-host proxy.golang.org"},
	} {
		var flags hostFlags
		var preset, program string
		cmd := &cobra.Command{
			Use: c.use, Short: c.short, Example: "  " + c.example,
			Long: c.short + `. It is kept for the workspace in your own settings, where no repository
can change it, and holds at once in hosts that run there. toolhost rules lists it, and toolhost rules --remove takes it back.`,
			Args: func(cmd *cobra.Command, args []string) error {
				switch {
				case preset != "" && len(args) > 0:
					return usageError{fmt.Errorf("--preset %s and %s: name one or the other", preset,
						strings.Join(args, " "))}
				case preset != "":
					return nil
				}
				return exactly(1, c.example)(cmd, args)
			},
			RunE: func(cmd *cobra.Command, args []string) error {
				if preset != "" {
					hosts := hostpreset.Hosts(preset)
					if hosts == nil {
						return usageError{fmt.Errorf("--preset %s: no such preset%s; there are %s", preset,
							didYouMean(preset, hostpreset.Names()), strings.Join(hostpreset.Names(), ", "))}
					}
					args = hosts
				}
				list := c.list
				if program != "" {
					list, args = settings.ListPrograms, slices.Clone(args)
					for i, host := range args {
						args[i] = settings.ProgramHost(program, host)
					}
				}
				return flags.permit(cmd.OutOrStdout(), list, args)
			},
		}
		if c.list == settings.ListHosts {
			cmd.Flags().StringVar(&program, "program", "",
				"allow the host to the program `NAME` alone, such as git, and not to what it starts")
			cmd.Flags().StringVar(&preset, "preset", "", "allow the hosts of `NAME`: "+
				strings.Join(hostpreset.Names(), ", "))
		}
		flags.addRoots(cmd.Flags(), "the `DIR` of the workspace; repeatable (default: the working directory)")
		flags.addState(cmd.Flags())
		all = append(all, cmd)
	}
	return all
}

// permit adds the texts to a list of the user's settings for each workspace.
func (f *hostFlags) permit(w io.Writer, list string, texts []string) error {
	where, _, err := f.loadRules(nil)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if err := mcpserver.CheckRule(where, list, text); err != nil {
			return usageError{err}
		}
	}
	return eachRoot(where, func(root string) error {
		for _, text := range texts {
			if err := settings.Append(where, root, list, text); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s: %s, for %s\n", list, sanitized(text), sanitized(root)); err != nil {
				return err
			}
		}
		return nil
	})
}

// removeRule removes the rule with this number in the list, or with this text.
func removeRule(w io.Writer, list ruleList, which string) error {
	var fit []listedRule
	for _, r := range list.Rules {
		if strconv.Itoa(r.Number) == which || r.Rule == which {
			fit = append(fit, r)
		}
	}
	if own := slices.DeleteFunc(slices.Clone(fit),
		func(r listedRule) bool { return r.entry.Kind != settings.User || r.entry.Client }); len(own) > 0 {
		fit = own
	}
	switch {
	case len(fit) == 0:
		return fmt.Errorf("--remove %s: no rule has that number or text%s; toolhost rules lists them", which,
			didYouMean(which, list.texts()))
	case len(fit) > 1:
		return fmt.Errorf("--remove %s: %d rules read so; name one by its number, such as %d", which, len(fit),
			fit[0].Number)
	}
	r := fit[0]
	if err := settings.Remove(r.entry, r.list); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "removed: %s %s, from %s\n", r.Action, sanitized(r.Rule), sanitized(r.Where))
	return err
}

// texts returns the rules that can be removed, as written.
func (l ruleList) texts() (all []string) {
	for _, r := range l.Rules {
		all = append(all, r.Rule)
	}
	return all
}
