package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/guard/sandbox"
)

func profileCommand() *cobra.Command {
	var install bool
	cmd := &cobra.Command{
		Use:   "profile seccomp|apparmor",
		Short: "Print or install the profile that lets the sandbox work in a container or on Ubuntu",
		Long: `Print the profile that lets the sandbox work: seccomp for containers, whose default profile forbids
namespaces and mounts, and apparmor for Ubuntu 23.10 and later, which forbids user namespaces to programs without a
profile. The AppArmor profile is for the path of this program. With --install it is written to /etc/apparmor.d and
loaded; that says how to remove it. toolhost doctor says whether commands are contained.`,
		Example: `  toolhost profile seccomp >toolhost.json
  docker run --security-opt seccomp=toolhost.json --security-opt systempaths=unconfined IMAGE

  sudo toolhost profile apparmor --install`,
		ValidArgs: []string{"seccomp", "apparmor"}, Args: exactly(1, "toolhost profile seccomp"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "seccomp" {
				if install {
					return usageError{errors.New("--install is for apparmor; toolhost profile --help shows how a container gets the " +
						"seccomp profile")}
				}
				_, err := fmt.Fprint(cmd.OutOrStdout(), sandbox.SeccompProfile)
				return err
			}
			if args[0] != "apparmor" {
				return usageError{fmt.Errorf("there is no profile %q: use seccomp or apparmor", args[0])}
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if self, err = filepath.EvalSymlinks(self); err != nil {
				return err
			}
			if install {
				return newAppArmor(cmd.Context(), self).install(cmd.OutOrStdout())
			}
			name, err := apparmorName(self)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), apparmorProfile(name))
			return err
		},
	}
	cmd.Flags().BoolVar(&install, "install", false,
		"as root: write the apparmor profile to /etc/apparmor.d and load it")
	return cmd
}
