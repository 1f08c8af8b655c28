package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/mcpserver/auth"
)

// tokenFlags select the file of named tokens.
type tokenFlags struct {
	hostFlags
	tokens string
}

func (f *tokenFlags) file() (string, error) { return tokensFile(f.tokens, f.stateDir) }

// names returns the names of the tokens, or none if the file cannot be read.
func (f *tokenFlags) names() (all []string) {
	file, err := f.file()
	if err != nil {
		return nil
	}
	tokens, _ := auth.ListTokens(file)
	for _, t := range tokens {
		all = append(all, t.Name)
	}
	return all
}

func tokenCommand() *cobra.Command {
	var flags tokenFlags
	cmd := &cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens of callers over HTTP",
		Long: `Make, list and revoke the tokens of callers over HTTP. Each has a name, rights and perhaps an end; what its
bearer does is on record under its name, and separate from what others do. A running host notices changes by itself.`,
	}
	flags.addState(cmd.PersistentFlags())
	addTokens(cmd.PersistentFlags(), &flags.tokens)
	cmd.AddCommand(tokenAddCommand(&flags), tokenListCommand(&flags), tokenRevokeCommand(&flags))
	return cmd
}

func tokenAddCommand(flags *tokenFlags) *cobra.Command {
	var rights, servers []string
	var root string
	var expires duration
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a token and print it, this once",
		Args: exactly(1, "toolhost token add ci --rights read"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := auth.CheckName(args[0]); err != nil {
				return usageError{err}
			}
			set, err := auth.ParseRights(rights)
			if err != nil {
				return usageError{fmt.Errorf("--rights: %w", err)}
			}
			file, err := flags.file()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("expires") && expires <= 0 {
				return usageError{fmt.Errorf("--expires %s: a token must live for some time, such as 30d", &expires)}
			}
			if root != "" {
				if root, err = ownRoot(root); err != nil {
					return usageError{fmt.Errorf("--root: %w", err)}
				}
				if servers == nil { // no other servers: these see all roots of the host
					servers = []string{}
				}
			}
			bearer, t, err := auth.AddToken(file, args[0], set, time.Duration(expires), root, servers...)
			if err != nil {
				return err
			}
			end := "it has no end"
			if !t.Expires.IsZero() {
				end = "it ends at " + t.Expires.Local().Format(time.DateTime)
			}
			may := t.Rights.String()
			if servers != nil {
				may = allowed(t)
			}
			if root != "" {
				may += " in " + root
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "The token %s may %s; %s. Only its digest is kept, in %s: keep the token now.\n",
				t.Name, may, end, file)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), bearer)
			return err
		},
	}
	cmd.Flags().StringSliceVar(&rights, "rights", auth.All.Names(),
		"the rights of the token, a `LIST` of read, write and exec")
	cmd.Flags().StringSliceVar(&servers, "servers", nil,
		"the other MCP servers that it may use, a `LIST` (default: all, with --root none; \"\": none)")
	cmd.Flags().StringVar(&root, "root", "", "the `DIR` in the host's roots that it works in, and out of which it sees "+
		"nothing of them (default: all roots)")
	cmd.Flags().Var(&expires, "expires", "how `LONG` it lives, such as 12h or 30d (default: until it is revoked)")
	cmd.Flags().Lookup("expires").DefValue = "" // otherwise the help would show 0s
	return cmd
}

// ownRoot returns the path of a directory without symbolic links.
func ownRoot(dir string) (string, error) {
	path, err := absolute(dir)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", errors.Join(err, fmt.Errorf("%s is not a directory", path))
	}
	return path, nil
}

func tokenRevokeCommand(flags *tokenFlags) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Take a token back, and end what it has open",
		Args: exactly(1, "toolhost token revoke ci"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return flags.names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := flags.file()
			if err != nil {
				return err
			}
			if err := auth.RevokeToken(file, args[0]); err != nil {
				if near := didYouMean(args[0], flags.names()); near != "" {
					err = fmt.Errorf("%w%s", err, near)
				}
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The token %s is revoked.\n", args[0])
			return err
		},
	}
}

func tokenListCommand(flags *tokenFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the tokens by name", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := flags.file()
			if err != nil {
				return err
			}
			if _, err := os.Stat(file); flags.tokens != "" && err != nil {
				return fmt.Errorf("--tokens: %w", err) // not a wrong name: the file has no tokens
			}
			tokens, err := auth.ListTokens(file)
			if err != nil {
				return err
			}
			if asJSON {
				return tokensJSON(cmd.OutOrStdout(), tokens)
			}
			return tokensTable(cmd.OutOrStdout(), tokens)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func tokensJSON(w io.Writer, tokens []auth.Token) error {
	type shown struct {
		Name    string      `json:"name"`
		Rights  auth.Rights `json:"rights"`
		Servers []string    `json:"servers,omitzero"`
		Root    string      `json:"root,omitzero"`
		Created time.Time   `json:"created"`
		Expires time.Time   `json:"expires,omitzero"`
		Expired bool        `json:"expired"`
	}
	all := []shown{}
	for _, t := range tokens {
		all = append(all, shown{t.Name, t.Rights, t.Servers, t.Root, t.Created, t.Expires, t.Expired(time.Now())})
	}
	return printJSON(w, all)
}

// allowed returns the names of the rights of a token, and of its servers if it does not have all.
func allowed(t auth.Token) string {
	text := strings.Join(t.Rights.Names(), ",")
	switch {
	case t.Servers == nil:
		return text
	case len(t.Servers) == 0:
		return text + " without servers"
	}
	return text + " with " + strings.Join(t.Servers, ",")
}

func tokensTable(w io.Writer, tokens []auth.Token) error {
	if len(tokens) == 0 {
		_, err := fmt.Fprintln(w, "There are no named tokens.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tRIGHTS\tCREATED\tEXPIRES\tROOT")
	for _, t := range tokens {
		expires := "never"
		switch {
		case t.Expired(time.Now()):
			expires = "expired"
		case !t.Expires.IsZero():
			expires = t.Expires.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", t.Name, allowed(t), t.Created.Local().Format(time.DateTime), expires,
			cmp.Or(t.Root, "all"))
	}
	return table.Flush()
}
