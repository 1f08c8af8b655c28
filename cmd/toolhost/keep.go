package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard/settle"
)

func keepCommand() *cobra.Command {
	var flags hostFlags
	var k keeping
	cmd := &cobra.Command{
		Use: "keep [PATH]... [flags]", Short: "Keep the changes of protected files that commands made",
		Long: `Keep the changes of protected files that commands made, or with --refuse drop them. Editors, shells, git and
agents obey such files by themselves, so what a command wrote there is held: commands see it, and outside of them the
former file stands. Without a PATH all held files of the workspace around the working directory are shown, and asked
for. While a command runs, a file is kept when the last one has ended.`,
		Example: `  toolhost keep --list
  toolhost keep .vscode/tasks.json --yes
  toolhost keep --refuse`,
		RunE: func(cmd *cobra.Command, args []string) error {
			state, err := flags.ownState()
			if err != nil {
				return err
			}
			keeper := settle.Open(state, nil, slog.New(slog.DiscardHandler))
			return errors.Join(k.run(cmd, keeper, args), keeper.Close())
		},
	}
	flags.addState(cmd.Flags())
	cmd.Flags().BoolVar(&k.list, "list", false, "only list what is held")
	cmd.Flags().BoolVar(&k.refuse, "refuse", false, "drop what is held; it stays for 30 days below the state directory")
	cmd.Flags().BoolVarP(&k.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&k.asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// keeping is the state of one keep command.
type keeping struct{ list, refuse, yes, asJSON bool }

// A heldFile is a file in the output of `toolhost keep --list --json`.
type heldFile struct {
	Path  string `json:"path"`
	State string `json:"state"` // new, changed or removed
	Aside string `json:"aside,omitempty"`
}

func (k *keeping) run(cmd *cobra.Command, keeper *settle.Keeper, args []string) error {
	files, err := heldFiles(keeper, args)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if k.list && k.asJSON {
		list := []heldFile{}
		for _, f := range files {
			list = append(list, heldFile{f.Path, f.State, f.Aside})
		}
		return printJSON(out, list)
	}
	if err := printHeld(out, files); err != nil || k.list || len(files) == 0 {
		return err
	}
	word, do := "Keep", keeper.Keep
	if k.refuse {
		word, do = "Drop", keeper.Refuse
	}
	if !k.yes {
		if err := confirmed(cmd, word+" them?"); err != nil {
			return err
		}
	}
	for _, dir := range keeper.Dirs() {
		var paths []string
		for _, f := range files {
			if f.Dir == dir {
				paths = append(paths, f.Path)
			}
		}
		if len(paths) == 0 {
			continue
		}
		if _, err := do(dir, paths...); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, "Done.")
	return err
}

// heldFiles returns the held files in some paths; without paths, those in the workspaces of the working directory.
func heldFiles(keeper *settle.Keeper, paths []string) (files []settle.File, err error) {
	names := slices.Clone(paths)
	if len(names) == 0 {
		names = []string{"."}
	}
	for i, name := range names {
		if names[i], err = filepath.Abs(name); err != nil {
			return nil, err
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(names[i])); err == nil {
			names[i] = filepath.Join(dir, filepath.Base(names[i]))
		}
		if info, err := os.Stat(names[i]); err == nil && info.IsDir() {
			if real, err := filepath.EvalSymlinks(names[i]); err == nil {
				names[i] = real
			}
		}
	}
	for _, dir := range keeper.Dirs() {
		list, err := keeper.Held(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			if slices.ContainsFunc(names,
				func(name string) bool { return isBelow(f.Path, name) || len(paths) == 0 && isBelow(name, dir) }) {
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// heldLines returns one line for each workspace with held files. It limits them to the workspaces in dirs, if there
// are any.
func heldLines(state string, dirs ...string) (lines []string) {
	if state == "" {
		return nil
	}
	keeper := settle.Open(state, nil, slog.New(slog.DiscardHandler))
	defer keeper.Close()
	for _, dir := range keeper.Dirs() {
		if len(dirs) > 0 && !slices.Contains(dirs, dir) {
			continue
		}
		if files, err := keeper.Held(dir); err == nil && len(files) > 0 {
			lines = append(lines, fmt.Sprintf("%d changes of protected files are held: cd %s && toolhost keep",
				len(files), shellQuote(dir)))
		}
	}
	return lines
}

func printHeld(out io.Writer, files []settle.File) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(out, "nothing is held")
		return err
	}
	for _, f := range files {
		line := fmt.Sprintf("%-8s %s", f.State, sanitized(f.Path))
		if f.Aside != "" && f.State != "removed" {
			line += "\n         held as " + sanitized(f.Aside)
		}
		former, now := f.Differing()
		if _, err := fmt.Fprint(out, line, "\n", marked("- ", former), marked("+ ", now)); err != nil {
			return err
		}
	}
	return nil
}

// maxMarked is how many lines of each side are printed of a held file.
const maxMarked = 20

// marked returns the first lines of a text, each with a mark before it.
func marked(mark, text string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; n <= maxMarked {
			fmt.Fprintf(&b, "  %s%s\n", mark, sanitized(strings.TrimRight(line, "\r\n")))
		}
	}
	if n > maxMarked {
		fmt.Fprintf(&b, "  %s… and %d more lines\n", mark, n-maxMarked)
	}
	return b.String()
}
