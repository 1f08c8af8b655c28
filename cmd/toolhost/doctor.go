package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/doctor"
)

func doctorCommand() *cobra.Command {
	var flags hostFlags
	var asJSON, quick bool
	var far farFlags
	cmd := &cobra.Command{
		Use: "doctor [flags] [ROOT]...", Short: "Say what this host works with, what it enforces, and what would make it " +
			"better",
		Long: `Say what this host works with, what it enforces, and what would make it better: a line each for the roots, the
rules, the sandbox, the shell, what is kept for searches, the state directory, the audit log, the tools, and the
clients on this machine. Then this program is started as clients start it, over stdio and HTTP, in both eras of the
protocol, and has to list its tools and read a file. The exit status is 1 when a line fails.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if far.name != "" {
				return report(cmd, far.examine(cmd, append(rootArguments(flags.roots), args...)), asJSON)
			}
			return flags.with(args, func(host *mcpserver.Host) error {
				findings := append(host.Operator().Examine(cmd.Context()), examineClients()...)
				if !quick {
					findings = append(findings, examineProtocol(cmd.Context())...)
				}
				return report(cmd, findings, asJSON)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	far.add(cmd.Flags(), "examine the link to this `TARGET` of toolhost remote, and the host there, instead of this "+
		"machine")
	cmd.Flags().BoolVar(&quick, "quick", false, "do not start this program to speak to it")
	return cmd
}

// report prints findings. One that fails is an error.
func report(cmd *cobra.Command, findings []doctor.Finding, asJSON bool) (err error) {
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), findings)
	} else {
		err = printFindings(cmd.OutOrStdout(), findings)
	}
	if err == nil && slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Level == doctor.LevelFail }) {
		return errReported
	}
	return err
}

// levelColours are the colours of the levels at a terminal.
var levelColours = map[string]colour{doctor.LevelOK: green, doctor.LevelWarn: yellow, doctor.LevelFail: red}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	for _, f := range findings {
		level := coloured(w, levelColours[f.Level], fmt.Sprintf("%-5s", sanitized(f.Level)))
		if _, err := fmt.Fprintf(w, "%s %-8s %s\n", level, sanitized(f.About),
			sanitized(strings.TrimSpace(f.Text))); err != nil {
			return err
		}
		if f.Remedy != "" {
			if _, err := fmt.Fprintf(w, "%14s → %s\n", "", sanitized(f.Remedy)); err != nil {
				return err
			}
		}
	}
	return nil
}

// examineClients reports the MCP clients on this machine, and whether toolhost is in their files.
func examineClients() []doctor.Finding {
	env, err := clients.System()
	if err != nil {
		return []doctor.Finding{{Level: doctor.LevelWarn, About: "client",
			Text: "the clients on this machine cannot be looked for: " + err.Error()}}
	}
	var all []doctor.Finding
	for _, c := range clients.All() {
		s := c.Status(env, thisServer(serverEntry))
		if s.Present || s.State == clients.Ours {
			all = append(all, clientFinding(s))
		}
		if !s.Present || c.Runs == nil {
			continue
		}
		if logins := c.Runs.OnPlatform(env).Logins; len(logins) > 0 {
			text := fmt.Sprintf("%s: in toolhost run it reads its login: %s", s.Title, strings.Join(logins, ", "))
			all = append(all, doctor.Finding{Level: doctor.LevelOK, About: "client", Text: text})
		}
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{
			Level: doctor.LevelOK, About: "client", Text: "no client that toolhost knows is on this machine",
			Remedy: "toolhost install --list",
		})
	}
	return all
}

// serverEntry is the default name of toolhost's entry in clients' files.
const serverEntry = "toolhost"

func clientFinding(s clients.Status) doctor.Finding {
	f := doctor.Finding{Level: doctor.LevelOK, About: "client"}
	switch s.State {
	case clients.Ours:
		f.Text = fmt.Sprintf("%s: toolhost is in %s: %s", s.Title, s.File, s.Server)
	case clients.Foreign:
		f.Level = doctor.LevelWarn
		f.Text = fmt.Sprintf("%s: %s names something else %q: %s", s.Title, s.File, serverEntry, s.Server)
		f.Remedy = "toolhost install " + s.Client + " --name OTHER"
	case clients.Broken:
		f.Level = doctor.LevelWarn
		f.Text = fmt.Sprintf("%s: %s cannot be read: %s", s.Title, s.File, s.Problem)
		f.Remedy = "correct the file"
	default:
		f.Text = s.Title + ": toolhost is not in it"
		f.Remedy = "toolhost install " + s.Client
	}
	return f
}

// examineProtocol starts this program as a client would and calls its tools.
func examineProtocol(ctx context.Context) []doctor.Finding {
	const about = "protocol"
	program, err := os.Executable()
	if err != nil {
		return []doctor.Finding{{Level: doctor.LevelFail, About: about, Text: "this program cannot be found: " +
			err.Error(), Remedy: "start it by its path"}}
	}
	results, err := Run(ctx, program)
	if err != nil {
		return []doctor.Finding{{Level: doctor.LevelFail, About: about, Text: err.Error(),
			Remedy: "make the directory for temporary files writable"}}
	}
	var all []doctor.Finding
	for _, r := range results {
		f := doctor.Finding{Level: doctor.LevelOK, About: about}
		f.Text = fmt.Sprintf("%s, revision %s: %d tools and a Read, answered within %s of the start", r.Transport,
			r.Era, r.Tools, r.Took.Round(time.Millisecond))
		if r.Err != nil {
			f.Level, f.Text = doctor.LevelFail, fmt.Sprintf("%s, revision %s: %v", r.Transport, r.Era, r.Err)
			f.Remedy = "see the lines above; if they are well, this is a defect of toolhost"
		}
		all = append(all, f)
	}
	return all
}
