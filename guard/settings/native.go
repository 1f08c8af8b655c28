package settings

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// keyNative is read before permissions.deny takes effect.
const keyNative = "rules.native"

// nativeName matches names of a client's own tools: without wildcards, and not a tool of an MCP server.
var nativeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// native moves the denies that apply only to a client's own tools from Deny to NativeDeny.
func (m *merger) native() {
	s := m.out
	s.Native = slices.DeleteFunc(s.Native, func(e Entry) bool {
		if nativeName.MatchString(e.Text) {
			return false
		}
		m.warn(e, "%s: %q is not the name of a client's own tool, such as Bash. It is left out", keyNative, e.Text)
		return true
	})
	var ours []Entry
	for _, e := range s.Deny {
		if s.speaksOfClient(e) {
			s.NativeDeny = append(s.NativeDeny, e)
		} else {
			ours = append(ours, e)
		}
	}
	s.Deny = ours
}

// speaksOfClient reports whether a deny concerns only the tool of the client whose file it is in: it is a bare name
// in rules.native. A deny of the administrator is lifted only by the administrator's rules.native.
func (s *Settings) speaksOfClient(deny Entry) bool {
	return deny.Client && slices.ContainsFunc(s.Native, func(n Entry) bool {
		return n.Text == strings.TrimSpace(deny.Text) && (n.Kind == Managed || deny.Kind != Managed)
	})
}

// Shared reports whether a deny in a settings file of Claude Code takes a whole tool from that client and from us: it
// is a bare name that rules.native could hold.
func (e Entry) Shared() bool { return e.Client && nativeName.MatchString(strings.TrimSpace(e.Text)) }

// UserFile returns our settings file of the user, ManagedFile that of the administrator.
func (cfg Config) UserFile() string {
	return filepath.Join(cfg.UserConfigDir, "toolhost", "toolhost.json")
}

// ManagedFile returns our settings file of the administrator.
func (cfg Config) ManagedFile() string { return cfg.managedDirs()[0][0] }
