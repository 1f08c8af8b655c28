package sandboxpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/credential"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// secrets returns the credentials of which commands have a sentinel. Those that have no value are left out. A caller
// over HTTP spends what it is given only, not what the host can find.
func secrets(commands guard.Commands) (list []sandbox.Secret) {
	patterns, all := commands.PassedVariables()
	env := variables(slices.Concat(shell.Inherited(patterns, all), commands.Environment()))
	for _, mask := range commands.MaskedVariables() {
		value := env[mask.Entry.Text]
		fetched := mask.Command != "" || mask.File != "" || credential.Expected(mask.Entry.Text)
		if fetched && !all || !fetched && value == "" {
			continue
		}
		list = append(list, sandbox.Secret{
			Name: mask.Entry.Text, Variable: mask.Entry.Text, Hosts: mask.InjectHosts, Body: mask.Body,
			Signs: credential.Signs(mask.Entry.Text), Sentinel: credential.Sentinel(value, mask.InjectHosts),
			Value: func(ctx context.Context) (string, error) {
				return credential.Value(ctx, mask.Entry.Text, mask.Command, mask.File, value)
			},
		})
	}
	return list
}

// WebHeader adds to a request of WebFetch, which goes to a host over TLS, the header of a masked variable for it. The
// function that it returns takes the value out of what the host answers; it is nil if there is none.
func WebHeader(ctx context.Context, commands guard.Commands, host, port string,
	header http.Header) (hide func(string) string, err error) {
	if commands.Discard() { // plan mode
		return nil, nil
	}
	all := secrets(commands)
	for _, mask := range commands.MaskedVariables() {
		i := slices.IndexFunc(all, func(s sandbox.Secret) bool { return s.Name == mask.Entry.Text && s.Serves(host, port) })
		if i < 0 || mask.Header == "" {
			continue
		}
		value, err := all[i].Value(ctx)
		if err != nil || len(value) < sandbox.MinSecret { // why is for people: it names files and commands
			return nil, fmt.Errorf("the credential %s cannot be used; toolhost credential test %[1]s shows a person why",
				mask.Entry.Text)
		}
		name, form, _ := strings.Cut(mask.Header, ": ")
		header.Set(name, strings.Replace(form, "$", value, 1))
		before := hide
		hide = func(text string) string {
			if before != nil {
				text = before(text)
			}
			return all[i].Hide(value, text)
		}
	}
	return hide, nil
}

// Masked returns the secret of a variable of a server.
func Masked(variable, value string, hosts []string) sandbox.Secret {
	return sandbox.Secret{Name: variable, Variable: variable, Hosts: hosts, Signs: credential.Signs(variable),
		Sentinel: credential.Sentinel(value, hosts), Value: func(context.Context) (string, error) { return value, nil }}
}

// withheld returns the variables that commands do not get: those that the settings deny, but for the sentinels.
func (c *Sandbox) withheld() []string {
	return slices.DeleteFunc(slices.Clone(c.policy.Commands().SecretVariables()), func(name string) bool {
		return slices.ContainsFunc(c.box.Env(), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	})
}

// maxMasked bounds a file that is masked, in bytes.
const maxMasked = 1 << 20

// maskFiles adds to a policy copies of masked files. It returns the files as they are now. A file that cannot be read
// or in which no secret is found stays hidden, and so does one with another name, at which commands would find it.
func maskFiles(commands guard.Commands, what *sandbox.Policy) map[string]fs.FileInfo {
	if _, all := commands.PassedVariables(); !all { // a caller over HTTP does not spend what the host can find
		return nil
	}
	copied := map[string]fs.FileInfo{}
	for _, mask := range commands.MaskedFiles() {
		info, err := os.Lstat(mask.Path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxMasked {
			continue
		}
		if _, names := identify(info); names > 1 {
			continue
		}
		text, err := readSame(mask.Path, info)
		if err != nil {
			continue
		}
		content, found := credential.MaskFile(mask.Path, text, mask.Extract, mask.InjectHosts)
		if len(found) == 0 {
			continue
		}
		for _, f := range found {
			what.Network.Secrets = append(what.Network.Secrets, sandbox.Secret{
				Name: mask.Entry.Text, Hosts: f.Hosts, Sentinel: f.Sentinel, Body: mask.Body, Signs: f.Signs,
				Value: func(context.Context) (string, error) { return f.Value, nil },
			})
		}
		what.Files = append(what.Files, sandbox.File{Path: mask.Path, Content: content})
		for _, list := range []*[]string{&what.Denied, &what.Masked} {
			*list = slices.DeleteFunc(slices.Clone(*list), func(path string) bool { return path == mask.Path })
		}
		copied[mask.Path] = info
	}
	return copied
}

// logIn makes the SSH agent of commands, if they have one.
func (c *Sandbox) logIn(cs *Pool) {
	commands := c.policy.Commands()
	to := commands.SSHDestinations()
	if _, all := commands.PassedVariables(); !all || len(to) == 0 || c.cell != nil || c.discard {
		return
	}
	var err error
	if c.ssh, err = sshagent.Listen(to); err != nil {
		cs.log.Warn("commands have no SSH agent", "error", err)
	}
}

// logsIn adds the SSH agent to a policy, and what is known of the keys of its hosts.
func (c *Sandbox) logsIn(what *sandbox.Policy) {
	if what.SSH = c.ssh; c.ssh == nil {
		return
	}
	path, text := c.ssh.KnownHosts()
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		c.copied[path] = info // the person may log in at a host for the first time
		if !c.policy.Commands().Hidden(path, false) || slices.Contains(what.Denied, path) {
			return
		}
		what.Files = append(what.Files, sandbox.File{Path: path, Content: text})
	}
}

// readSame reads a file that was examined, and not what a command has put in its place since.
func readSame(path string, was fs.FileInfo) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait
	if err != nil {
		return "", err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(was, now) {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxMasked))
	return string(text), err
}

// copiesOutdated reports whether a file has changed of which commands have a copy.
func (c *Sandbox) copiesOutdated() bool {
	for path, was := range c.copied {
		now, err := os.Lstat(path)
		if err != nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) || was.Size() != now.Size() {
			return true
		}
	}
	return false
}
