package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settings"
)

// welcome is what toolhost prints at a terminal without a command: the state of this machine and what to do, in six
// lines.
func welcome(cmd *cobra.Command, _ []string) error {
	var here []string
	for _, c := range clientsHere() {
		here = append(here, c.Title)
	}
	if here == nil {
		here = []string{"none that toolhost knows"}
	}
	next := firstClient()
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"sandbox here", sandboxLine(cmd.Context(), nil)},
		{"clients here", strings.Join(here, ", ")},
		{"toolhost demo", "watch a played agent meet the rules, in a second and without an account"},
		{"toolhost install " + next.Name, "add toolhost to a client"},
		{"toolhost try -- " + next.Program, "let an agent work on a copy of this directory"},
		{"toolhost --help", "list the commands; toolhost doctor examines this machine"},
	} {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	return table.Flush()
}

// sandboxLine says in one line how commands are contained on this machine, according to a trial. set is nil if there
// are no settings.
func sandboxLine(ctx context.Context, set *settings.Sandbox) string {
	if set != nil && !set.Enabled {
		return "off, by sandbox.enabled: commands run with all your rights"
	}
	report := sandbox.Probe(ctx, set != nil && set.Seatbelt)
	e := report.Enforces
	switch {
	case report.Backend == sandbox.None:
		return "none: commands run with all your rights; toolhost doctor says how to get one"
	case e.Writes && e.Denies && e.Network && e.Processes:
		return fmt.Sprintf("%s: the kernel holds commands to the workspace, the rules and the allowed hosts",
			report.Backend)
	}
	text, _, _ := strings.Cut(report.String(), " (")
	return text + "; toolhost doctor says why"
}

// clientsHere are the known clients that are on this machine.
func clientsHere() (here []clients.Client) {
	env, err := clients.System()
	if err != nil {
		return nil
	}
	for _, c := range clients.All() {
		if c.Present(env) {
			here = append(here, c)
		}
	}
	return here
}

// firstClient is a client on this machine that has a program, or Claude Code.
func firstClient() clients.Client {
	for _, c := range clientsHere() {
		if c.Program != "" {
			return c
		}
	}
	c, _ := clients.Find("claude-code") // the table has it
	return c
}
