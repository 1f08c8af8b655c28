package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

func callCommand() *cobra.Command {
	var flags hostFlags
	var session, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call TOOL JSON|-|KEY=VALUE... [flags] [ROOT]...",
		Short: "Run one call through the whole pipeline and print its text",
		Long: `Run one call through the whole pipeline and print its text. The exit status is 1 when the tool reports an
error, or the call is refused. At a terminal the progress of a long call is shown.

Arguments are one JSON object, - to read it from stdin, or words such as file_path=README.md; KEY:=JSON gives a value
that is not text, such as edits:='[...]'. An image of a result is saved to a file, which is named.

Calls with the same --session share what was read, so that an Edit can follow a Read. A command starts when the
workspace has been read, so that what it changes can be taken back; it waits at most 10 seconds for that.`,
		Args: atLeast(2, `toolhost call Read '{"file_path":"README.md"}'`), ValidArgsFunction: completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			input, roots, err := arguments(cmd, args[1:])
			if err != nil {
				return err
			}
			if err := refuseBackground(input); err != nil {
				return err
			}
			return flags.with(roots, func(host *mcpserver.Host) error {
				return runCall(cmd, host, session, args[0], input, output, asJSON)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&session, "session", "", "a `NAME` that later calls can use to share what was read")
	cmd.Flags().StringVarP(&output, "output", "o", "",
		"save an image of the result to this `FILE` (default: one in the temporary directory)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}

// runCall makes a call, and prints its progress and its result. An image of the result is saved to output.
func runCall(cmd *cobra.Command, host *mcpserver.Host, session, tool string, input []byte, output string,
	asJSON bool) error {
	shown := showProgress(cmd.ErrOrStderr(), tool)
	reply := host.Call(cmd.Context(), host.AdmitNamed(session),
		mcpserver.Request{Tool: tool, Args: input, Client: builtin.Client{Progress: shown.callback()}})
	shown.stop()
	err := printReply(cmd.OutOrStdout(), reply, asJSON)
	if err == nil && !asJSON {
		err = saveImages(cmd.ErrOrStderr(), reply.Images, output)
	}
	if err == nil && reply.IsError {
		if session == "" && !asJSON && reply.Unread {
			fmt.Fprintln(cmd.ErrOrStderr(), "Without --session NAME a call begins with nothing read: repeat it with one, "+
				"the same each time.")
		}
		err = errReported
	}
	return err
}

// refuseBackground refuses a call that would start a task: the task would end with this command, which is its host.
func refuseBackground(input []byte) error {
	var args struct {
		Background any `json:"run_in_background"`
	}
	if json.Unmarshal(input, &args) == nil && (args.Background == true || args.Background == "true") {
		return usageError{errors.New("run_in_background: the task would end with this command, which is the host: leave it " +
			"out, or call a host that serves (toolhost http)")}
	}
	return nil
}

// saveImages saves the images of a result and prints their paths.
func saveImages(w io.Writer, images []builtin.Image, output string) error {
	for i, image := range images {
		_, kind, _ := strings.Cut(image.MIME, "/")
		var f *os.File
		var err error
		switch {
		case output == "":
			f, err = os.CreateTemp("", "toolhost-*."+kind)
		case i == 0:
			f, err = os.Create(output)
		default:
			ext := filepath.Ext(output)
			f, err = os.Create(fmt.Sprintf("%s-%d%s", strings.TrimSuffix(output, ext), i+1, ext))
		}
		if err != nil {
			return err
		}
		_, err = f.Write(image.Data)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s saved to %s\n", image.MIME, f.Name())
	}
	return nil
}

// A calledResult is the output of `toolhost call --json`.
type calledResult struct {
	Text       string        `json:"text"`
	IsError    bool          `json:"is_error"`
	Structured any           `json:"structured,omitempty"`
	Images     []calledImage `json:"images,omitempty"`
	// Kept is the file with the whole result, when the text was cut.
	Kept string `json:"kept,omitempty"`
}

// A calledImage is an image of a result; the data is in base64.
type calledImage struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

func printReply(w io.Writer, r mcpserver.Reply, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(w, ended(r.Text))
		return err
	}
	result := calledResult{Text: r.Text, IsError: r.IsError, Structured: r.Structured, Kept: r.SavedPath}
	for _, image := range r.Images {
		result.Images = append(result.Images, calledImage{image.MIME, image.Data})
	}
	return printJSON(w, result)
}

func toolsCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tools [flags] [ROOT]...", Short: "List the tools that are served",
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(args, func(host *mcpserver.Host) error {
				host.Operator().Gateway().Wait(cmd.Context())
				return printTools(cmd.OutOrStdout(), host.Tools(mcpserver.Local()), asJSON)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as clients get it")
	return cmd
}

func printTools(w io.Writer, tools []*builtin.Def, asJSON bool) error {
	if asJSON {
		list, err := mcpserver.ToolsJSON(tools)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", list)
		return err
	}
	for _, d := range tools {
		summary, _, _ := strings.Cut(d.Doc, "\n")
		if _, err := fmt.Fprintf(w, "%-14s %s\n", d.Name, summary); err != nil {
			return err
		}
	}
	return nil
}

func checkCommand() *cobra.Command {
	var flags hostFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check TOOL JSON|-|KEY=VALUE... [flags] [ROOT]...",
		Short: "Tell what the rules say of a call, without running it",
		Long: `Tell what the rules say of a call, without running it: the verdict, the rule and where it stands, and each
command or path it was found for. Where the text of a command does not tell every program that it starts, --json says
"held": "when programs start". The exit status is 1 when the call would not run unasked.`,
		Args: atLeast(2, `toolhost check Bash '{"command":"git push"}'`), ValidArgsFunction: completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			input, roots, err := arguments(cmd, args[1:])
			if err != nil {
				return err
			}
			return flags.with(roots, func(host *mcpserver.Host) error {
				verdict, err := host.Operator().Check(cmd.Context(), mcpserver.LocalPrincipal, args[0], input)
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(cmd.OutOrStdout(), verdict)
				} else {
					text := mcpserver.Sanitize(mcpserver.Explain(verdict))
					word := verdict.Action.String()
					_, err = io.WriteString(cmd.OutOrStdout(),
						coloured(cmd.OutOrStdout(), actionColours[word], word)+strings.TrimPrefix(text, word))
				}
				if err == nil && verdict.Action != guard.Allow {
					err = errReported
				}
				return err
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON")
	return cmd
}

// pair is an argument of a call as a word: KEY=TEXT, or KEY:=JSON.
var pair = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)(:?=)(.*)$`)

// arguments reads the arguments of a call: one JSON object, or words. The arguments after them are roots.
func arguments(cmd *cobra.Command, words []string) (input []byte, roots []string, err error) {
	args := map[string]any{}
	for len(words) > 0 {
		m := pair.FindStringSubmatch(words[0])
		if m == nil {
			break
		}
		words = words[1:]
		if m[2] == "=" {
			args[m[1]] = m[3]
		} else if !json.Valid([]byte(m[3])) {
			return nil, nil, usageError{fmt.Errorf("%s:= takes JSON, got %s; %s= takes text", m[1], m[3], m[1])}
		} else {
			args[m[1]] = json.RawMessage(m[3])
		}
	}
	if len(args) > 0 {
		input, err = json.Marshal(args)
		return input, words, err
	}
	input, err = argument(cmd, words[0])
	return input, words[1:], err
}

// completeTools proposes the tools for the first argument.
func completeTools(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return allTools(), cobra.ShellCompDirectiveNoFileComp
}

// ended returns text with a final newline.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
