package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
)

func verifyCommand() *cobra.Command {
	flags := installFlags{name: serverEntry}
	var asJSON, inRun bool
	cmd := &cobra.Command{
		Use: "verify CLIENT", Short: "Report what the model of an MCP client gets of toolhost",
		Long: `Report what the model of an MCP client gets of toolhost. The client is run in a directory of its own, with
toolhost in its configuration, for a model on this machine that is played. The report says which of our tools the
model is offered, which of its own the client keeps, and whether these get at a file that only the rules of toolhost
deny. Which of its own tools are switched off is read from your files: a copy of these settings is tried. Nothing else
of yours is read, nothing is written, and no account is needed.

The exit status is 0 when all our tools are offered and the file was held, 1 when not, and 3 for a client whose model
cannot be played.`,
		Example: "  toolhost verify claude-code\n  toolhost verify codex --json | jq .offered",
		Args:    exactly(1, "toolhost verify claude-code"), ValidArgsFunction: completeClients,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, r, err := flags.client(args[0])
			if err == nil {
				r.Replace, r.Run = flags.replace, inRun
				if r.Server.Command, err = clients.Self(); err == nil && flags.remote.name != "" {
					err = flags.elsewhere(client, &r)
				}
			}
			if err != nil {
				return err
			}
			verdict, err := client.Verify(cmd.Context(), r)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), verdict)
			} else {
				err = printVerdict(cmd.OutOrStdout(), client, verdict)
			}
			if err == nil && !verdict.OK {
				err = cmp.Or(verdict.Problem, errReported)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&flags.replace, "replace", false, "with the configuration that install --replace writes")
	flags.remote.add(cmd.Flags(), "with the tools of the host that toolhost remote uses for this `TARGET`")
	cmd.Flags().BoolVar(&inRun, "run", false, "in toolhost run, where the rules hold for its own tools too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("replace", "run")
	cmd.MarkFlagsMutuallyExclusive("remote", "run")
	return cmd
}

// printVerdict prints a verdict as text.
func printVerdict(w io.Writer, client clients.Client, v *clients.Verdict) (err error) {
	list := func(about string, names []string, more string) {
		text := "none"
		if len(names) > 0 {
			text = strings.Join(names, ", ")
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%-9s %s%s\n", about, sanitized(text), more)
		}
	}
	_, err = fmt.Fprintf(w, "%s %s\n", client.Title, sanitized(v.Version))
	list("offered:", v.Offered.Ours, fmt.Sprintf(" (%d bytes)", v.Bytes))
	list("deferred:", v.Deferred, "")
	list("missing:", v.Missing, "")
	list("its own:", v.Offered.Own, "")
	canary := v.Canary
	if v.LeakedBy != nil {
		canary += " by " + strings.Join(v.LeakedBy, ", ")
	}
	list("canary:", []string{canary}, "")
	return err
}

// replaceOwn disables the client's own tools, prints which remain, and verifies the client if it is installed.
func (f *installFlags) replaceOwn(cmd *cobra.Command, client clients.Client, r clients.Request) error {
	out := cmd.OutOrStdout()
	reports, err := client.Replace(cmd.Context(), r)
	for _, report := range reports {
		err = errors.Join(err, printReport(out, client, r, report))
	}
	if err != nil {
		return err
	}
	for _, p := range client.Replaces {
		if p.Note != "" {
			fmt.Fprintf(out, "note:   %s\n", p.Note)
		}
	}
	own := cmp.Or(client.Keeps, "its own tools")
	switch {
	case client.Replaces == nil:
		fmt.Fprintf(out, "note:   %s keeps %s: no setting of it switches them off; use toolhost run\n",
			client.Title, own)
	case client.Since == "":
		fmt.Fprintf(out, "note:   what these settings do was not tried: look at the tools that %s offers\n",
			client.Title)
	default:
		fmt.Fprintf(out, "note:   these settings were tried with %s %s", client.Title, client.Since)
		if client.Keeps != "" {
			fmt.Fprintf(out, ", which keeps %s", client.Keeps)
		}
		fmt.Fprintln(out)
	}
	if client.Verifies == nil || r.DryRun || r.Env.LookPath(client.Program) == "" {
		return nil
	}
	r.Replace = true
	verdict, err := client.Verify(cmd.Context(), r)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n")
	return errors.Join(printVerdict(out, client, verdict), verdict.Problem)
}
