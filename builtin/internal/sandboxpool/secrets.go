package sandboxpool

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/credential"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settings"
)

// secrets returns the credentials of which commands have a sentinel. Those that have no value are left out. A caller over HTTP spends
// what it is given only, not what the host can find.
func secrets(commands guard.Commands) (list []sandbox.Secret) {
	patterns, all := commands.PassedVariables()
	env := variables(slices.Concat(shell.Inherited(patterns, all), commands.Environment()))
	for _, mask := range commands.MaskedVariables() {
		value := env[mask.Entry.Text]
		fetched := mask.Command != "" || mask.File != ""
		if fetched && !all || !fetched && value == "" {
			continue
		}
		list = append(list, sandbox.Secret{
			Name: mask.Entry.Text, Variable: mask.Entry.Text, Hosts: mask.InjectHosts, Sentinel: credential.Sentinel(value, mask.InjectHosts),
			Value: func(ctx context.Context) (string, error) { return ValueOf(ctx, mask, value) },
		})
	}
	return list
}

// ValueOf returns the value of a masked variable that has one in the environment.
func ValueOf(ctx context.Context, mask settings.Mask, inherited string) (string, error) {
	switch {
	case mask.Command != "":
		return credential.Run(ctx, mask.Command)
	case mask.File != "":
		return credential.ReadFile(mask.File)
	case inherited == "":
		return "", errors.New("the variable is not set")
	}
	return inherited, nil
}

// withheld returns the variables that commands do not get: those that the settings deny, but for the sentinels.
func (c *Sandbox) withheld() []string {
	return slices.DeleteFunc(slices.Clone(c.policy.Commands().SecretVariables()), func(name string) bool {
		return slices.ContainsFunc(c.box.Env(), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	})
}
