package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard/sandbox"
)

func profileCommand() *cobra.Command {
	return &cobra.Command{
		Use: "profile seccomp|apparmor", Short: "Print the profile that lets the sandbox work in a container or on Ubuntu",
		Long: `Print the profile that lets the sandbox work: seccomp for containers, whose default profile forbids namespaces and
mounts, and apparmor for Ubuntu 23.10 and later, which forbids user namespaces to programs without a profile. The
AppArmor profile is for the path of this program. toolhost doctor says whether commands are contained.`,
		Example: `  toolhost profile seccomp >toolhost.json
  docker run --security-opt seccomp=toolhost.json --security-opt systempaths=unconfined IMAGE

  toolhost profile apparmor | sudo tee /etc/apparmor.d/toolhost
  sudo apparmor_parser --replace /etc/apparmor.d/toolhost`,
		ValidArgs: []string{"seccomp", "apparmor"}, Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := sandbox.SeccompProfile
			if args[0] == "apparmor" {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				if self, err = filepath.EvalSymlinks(self); err != nil {
					return err
				}
				text = apparmorProfile(self)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
}

var (
	apparmorPath   = regexp.MustCompile(`(?m)^profile toolhost \S+`)
	apparmorEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "^", `\^`)
)

// apparmorProfile returns the profile for the program at a path.
func apparmorProfile(program string) string {
	return apparmorPath.ReplaceAllLiteralString(sandbox.AppArmorProfile, `profile toolhost "`+apparmorEscape.Replace(program)+`"`)
}
