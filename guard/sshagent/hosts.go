package sshagent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// ownKnownHosts is the person's file with the keys of hosts; "" without a home directory.
func ownKnownHosts() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".ssh", "known_hosts")
}

// knownHosts returns the lines of the person's files with the keys of hosts. As for SSH, a line that cannot be parsed
// is ignored.
func knownHosts() (lines []string) {
	for _, path := range []string{ownKnownHosts(), "/etc/ssh/ssh_known_hosts"} {
		text, _ := os.ReadFile(path) // there may be none
		for line := range strings.Lines(string(text)) {
			if _, _, _, _, _, err := ssh.ParseKnownHosts([]byte(line)); err == nil {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// readHosts reads the keys of hosts.
func (a *Agent) readHosts() (err error) {
	a.lines = knownHosts()
	path := filepath.Join(a.dir, "known_hosts") // the parser takes files only
	if err = os.WriteFile(path, []byte(strings.Join(a.lines, "\n")), 0o600); err == nil {
		a.known, err = knownhosts.New(path)
	}
	return errors.Join(err, os.RemoveAll(path))
}

// KnownHosts returns the path of the file in which SSH looks for the keys of hosts, and as a text the lines for the
// destinations.
func (a *Agent) KnownHosts() (path, text string) {
	for _, d := range a.destinations {
		var unknown *knownhosts.KeyError
		if errors.As(a.known(d.Address(), noAddress, noKey{}), &unknown) {
			for _, key := range unknown.Want {
				line := knownhosts.Line([]string{d.Address()}, key.Key) + "\n"
				if strings.HasPrefix(a.lines[key.Line-1], authority) {
					line = authority + " " + line
				}
				if a.known(d.Address(), noAddress, key.Key) == nil { // it is not revoked
					text += line
				}
			}
		}
	}
	return ownKnownHosts(), text
}

// authority marks a key that signs those of hosts.
const authority = "@cert-authority"

// noKey is a key that no host has.
type noKey struct{ ssh.PublicKey }

func (noKey) Type() string    { return "" }
func (noKey) Marshal() []byte { return nil }

// noAddress stands for the address of a host: names are looked up.
var noAddress = &net.TCPAddr{}
