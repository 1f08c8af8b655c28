package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/mcpserver"
)

// adoptServers moves the client's other servers to the user's own settings of toolhost.
func (f *installFlags) adoptServers(cmd *cobra.Command, client clients.Client, r clients.Request) error {
	into, err := (&hostFlags{}).serverFile()
	if err != nil {
		return err
	}
	adopted, report, err := client.Adopt(cmd.Context(), r, into)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	for _, name := range slices.Sorted(maps.Keys(adopted.Left)) {
		fmt.Fprintf(w, "%s stays in the file of %s: %s\n", sanitized(name), client.Title, sanitized(adopted.Left[name]))
	}
	if len(adopted.Entries) == 0 {
		_, err = fmt.Fprintf(w, "%s has no other servers to move\n", client.Title)
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %smoved from %s to %s\n\n%s\n",
		sanitized(strings.Join(slices.Sorted(maps.Keys(adopted.Entries)),
			", ")), would(r.DryRun), sanitized(report.File), sanitized(into), mcpserver.Sanitize(report.Diff))
	return err
}

// giveServersBack returns the adopted servers to the client's file.
func (f *installFlags) giveServersBack(cmd *cobra.Command, client clients.Client, r clients.Request) error {
	from, err := (&hostFlags{}).serverFile()
	if err != nil {
		return err
	}
	adopted, report, err := client.GiveBack(cmd.Context(), r, from)
	if err != nil || len(adopted.Entries) == 0 {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %sput back into %s\n",
		sanitized(strings.Join(slices.Sorted(maps.Keys(adopted.Entries)), ", ")), would(r.DryRun), sanitized(report.File))
	return err
}
