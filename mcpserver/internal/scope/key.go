package scope

import (
	"fmt"
	"slices"
	"strings"
)

// A Key is a key of a request's _meta whose value names a conversation. It partitions what belongs to a
// principal and never authorises.
type Key struct {
	Name string
	// Exact says that each value identifies the conversation of one agent. Its state is kept over a restart, and what a
	// person allows in it may be remembered. Otherwise several agents may share a value.
	Exact bool
}

// claudeSession is the key of a session of Claude Code.
const claudeSession = "claudecode/sessionId"

// knownKeys returns the keys that clients are known to send. Claude Code's key is shared by the subagents of a
// session.
func knownKeys() []Key {
	return []Key{{"threadId", true}, {"vscode.conversationId", true}, {"openai/session", true}, {claudeSession, false}}
}

// allKeys returns the keys of a host in the order in which they are looked for: the further ones first. They replace
// known ones of the same name.
func allKeys(further []Key) []Key {
	return append(slices.Clone(further), slices.DeleteFunc(knownKeys(), func(k Key) bool {
		return slices.ContainsFunc(further, func(f Key) bool { return f.Name == k.Name })
	})...)
}

// ParseKey parses NAME, NAME=shared or NAME=exact. NAME alone is shared, the safe choice.
func ParseKey(text string) (Key, error) {
	name, kind, given := strings.Cut(text, "=")
	key := Key{Name: name, Exact: kind == "exact"}
	switch {
	case name == "" || given && kind != "exact" && kind != "shared":
		return key, fmt.Errorf("%q is not a scope key: use the name of a key of _meta, with =exact if each value identifies "+
			"one conversation of an agent, or =shared", text)
	case name == MetaHandle || name == "progressToken" || strings.HasPrefix(name, "io.modelcontextprotocol/"):
		return key, fmt.Errorf("the scope key %s has a meaning of its own in _meta", name)
	}
	return key, nil
}
