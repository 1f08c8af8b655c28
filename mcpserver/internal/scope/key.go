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
	// Exact says that each value is that of one agent's conversation. Its state survives a restart, and what a
	// person allowed there may be remembered. Otherwise several agents may share it.
	Exact bool
}

// claudeSession is the key of a session of Claude Code.
const claudeSession = "claudecode/sessionId"

// knownKeys are the keys that clients are known to send. Claude Code's is shared by the subagents of a session.
func knownKeys() []Key {
	return []Key{{"threadId", true}, {"vscode.conversationId", true}, {"openai/session", true}, {claudeSession, false}}
}

// allKeys are the keys of a host in the order in which they are looked for: further ones first. They replace
// known ones of the same name.
func allKeys(further []Key) []Key {
	return append(slices.Clone(further), slices.DeleteFunc(knownKeys(), func(k Key) bool {
		return slices.ContainsFunc(further, func(f Key) bool { return f.Name == k.Name })
	})...)
}

// ParseKey reads NAME, NAME=shared or NAME=exact. What is not said to be exact is shared, which is the safe
// guess.
func ParseKey(text string) (Key, error) {
	name, kind, given := strings.Cut(text, "=")
	key := Key{Name: name, Exact: kind == "exact"}
	switch {
	case name == "" || given && kind != "exact" && kind != "shared":
		return key, fmt.Errorf("%q is not a scope key: use the name of a key of _meta, with =exact if each value identifies one conversation of an agent, or =shared", text)
	case name == MetaHandle || name == "progressToken" || strings.HasPrefix(name, "io.modelcontextprotocol/"):
		return key, fmt.Errorf("the scope key %s has a meaning of its own in _meta", name)
	}
	return key, nil
}
