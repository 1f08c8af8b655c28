package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// manCommand writes the manual pages. The generator of cobra would add 0.5 ms and 0.7 MB to every start.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a directory", Hidden: true,
		Args: exactly(1, "toolhost man ~/man"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writePages(cmd.Root(), args[0])
		},
	}
}

// writePages writes a page for a command and for each one below it.
func writePages(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.Name() == "help" {
		return nil
	}
	cmd.InitDefaultHelpFlag()
	file := filepath.Join(dir, pageName(cmd)+".1")
	if err := os.WriteFile(file, manual(cmd), 0o644); err != nil {
		return err
	}
	for _, below := range cmd.Commands() {
		if err := writePages(below, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// pageWidth is how many columns the options of a page take.
const pageWidth = 72

// manual is the page of one command, in the man macros of roff.
func manual(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"toolhost\"\n", strings.ToUpper(pageName(cmd)),
		roff("toolhost "+versionString()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	}
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	paragraphs(&b, about)
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	if cmd.HasAvailableFlags() && cmd.Runnable() {
		fmt.Fprintf(&b, ".SH OPTIONS\n.nf\n%s.fi\n", roff(cmd.Flags().FlagUsagesWrapped(pageWidth)))
	}
	var related []string
	if cmd.HasParent() {
		related = append(related, pageName(cmd.Parent()))
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Name() != "help" {
			related = append(related, pageName(below))
		}
	}
	if len(related) > 0 {
		slices.Sort(related)
		for i, name := range related {
			related[i] = "\\fB" + roff(name) + "\\fR(1)"
		}
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(related, ",\n"))
	}
	return b.Bytes()
}

// paragraphs writes text. Indented lines keep their line breaks.
func paragraphs(b *bytes.Buffer, text string) {
	for i, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(part, " ") {
			fmt.Fprintf(b, ".nf\n%s\n.fi\n", roff(strings.TrimRight(part, "\n")))
			continue
		}
		fmt.Fprintf(b, "%s\n", roff(part))
	}
}

var roffEscaper = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff escapes text that roff would take for a request.
func roff(text string) string {
	text = roffEscaper.Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
