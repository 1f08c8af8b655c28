package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"toolhost/guard"
	"toolhost/mcpserver"
)

// copyLimited copies at most as much as one message may hold.
func copyLimited(w io.Writer, r io.Reader) (int64, error) {
	n, err := io.Copy(w, io.LimitReader(r, mcpserver.MaxMessage+1))
	if err == nil && n > mcpserver.MaxMessage {
		err = fmt.Errorf("they are longer than %d bytes", mcpserver.MaxMessage)
	}
	return n, err
}

func callCommand() *cobra.Command {
	var flags hostFlags
	var session string
	cmd := &cobra.Command{
		Use: "call TOOL JSON|- [flags] [ROOT]...", Short: "Run one call through the whole pipeline and print its text",
		Long: `Run one call through the whole pipeline and print its text. The exit status is 1 when the tool reports an error.

Calls with the same --session share what was read, so that an Edit can follow a Read.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			input, err := argument(cmd, args[1])
			if err != nil {
				return err
			}
			host, err := flags.open(args[2:], false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			reply := host.Call(cmd.Context(), host.ArriveNamed(session), mcpserver.Request{Tool: args[0], Args: input})
			out := cmd.OutOrStdout()
			if _, err := io.WriteString(out, ended(reply.Text)); err != nil {
				return err
			}
			if reply.IsError {
				return errReported
			}
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&session, "session", "", "a `NAME` that later calls can use to share what was read")
	return cmd
}

func toolsCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tools [flags] [ROOT]...", Short: "List the tools that are served",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			host, err := flags.open(args, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			out := cmd.OutOrStdout()
			if asJSON {
				list, err := mcpserver.ToolsJSON(host.Tools(mcpserver.LocalPrincipal))
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(out, "%s\n", list)
				return err
			}
			for _, d := range host.Tools(mcpserver.LocalPrincipal) {
				summary, _, _ := strings.Cut(d.Doc, "\n")
				if _, err := fmt.Fprintf(out, "%-14s %s\n", d.Name, summary); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as clients get it")
	return cmd
}

func checkCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check TOOL JSON|- [flags] [ROOT]...", Short: "Tell what the rules say of a call, without running it",
		Long: `Tell what the rules say of a call, without running it: the verdict, the rule and where it stands, and each
command or path it was found for. The exit status is 1 when the call would not run unasked.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			input, err := argument(cmd, args[1])
			if err != nil {
				return err
			}
			host, err := flags.open(args[2:], false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, host.Close()) }()
			verdict, err := host.Check(cmd.Context(), mcpserver.LocalPrincipal, args[0], input)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				err = json.NewEncoder(out).Encode(verdict)
			} else {
				_, err = io.WriteString(out, mcpserver.Explain(verdict))
			}
			if err == nil && verdict.Action != guard.Allow {
				err = errReported
			}
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON")
	return cmd
}

// ended makes text end in a newline.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
