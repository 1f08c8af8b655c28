package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/statedir"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// A Config configures a host. The zero value is refused: a host needs a root.
type Config struct {
	// Roots are the directories the tools work in, the first being the default. See [Roots].
	Roots []string
	// RootsNamed says that the user named the roots explicitly. They may then be "/" or the home directory.
	RootsNamed bool
	// Refuse is the reason to refuse every call, so that a client shows what a person must correct. If nil, the rules
	// decide.
	Refuse error
	// Settings are extra settings files; Allow and Deny are rules from the command line.
	Settings    []string
	Allow, Deny []string
	// TrustWorkspace lets the settings files of the roots allow things as well as forbid them.
	TrustWorkspace bool
	// TrustDigest does that only for files whose content has this digest, see [settings.Config].
	TrustDigest string
	// Tools limits the host to the named tools. Empty: all.
	Tools []string
	// With names tools to serve in addition to Tools or to the default tools.
	With []string
	// MCPConfig lists files in which the user configures other servers. Their tools are served as
	// mcp__SERVER__TOOL.
	MCPConfig []string
	// CustomTools are served in addition to the tools of package builtin, under the same rules.
	CustomTools []*builtin.Def
	// StateDir keeps results, read state and journals. Empty: [DefaultStateDir].
	StateDir string
	// AuditLog is the file of the audit log. If empty, it is audit.jsonl in the state directory; the host then also
	// works if that file cannot be written.
	AuditLog string
	// AuditMaxSize is the size in bytes at which the audit log is rotated; 0: never. AuditKeep is
	// how many earlier files are kept. See [audit.Config].
	AuditMaxSize int64
	AuditKeep    int
	// OwnFiles are further files that the host writes. Obeyed are files that it obeys or keeps secret: certificates,
	// keys, tokens. No tool or command can write either, wherever they are, or read those in Obeyed.
	OwnFiles, Obeyed []string
	// CommandWait is how long the first command waits until its workspace has been read. Changes before that cannot be
	// undone. Zero means 2 s. A host for one call waits longer.
	CommandWait time.Duration
	// OnWarm is called whenever the host has prepared for a caller's first command. Nil: it is not called.
	OnWarm func()
	// Remote says that callers come over a network, so no person is present at the machine.
	Remote bool
	// Apart is a directory with other workspaces, that of the roots among them. Callers with a root of their own cannot
	// read the others. Empty: there is none.
	Apart string
	// Contained refuses every command outside of the sandbox, whatever the settings say. It is for clients that are
	// themselves in a sandbox of this host: a call must not let them leave it.
	Contained bool
	// CopyOf is the work tree that the root is a copy of. The rules of the workspace also apply there, and it is
	// read-only.
	CopyOf string
	// ScopeKeys are further keys of a request's _meta that name a conversation, or other views of known ones.
	ScopeKeys []scope.Key
	// StrictScope refuses calls over HTTP whose scope is not exact.
	StrictScope bool
	// ToolSearch says whether clients that have no preference search for the tools of other servers ("on") or list them
	// ("off"). "auto" or empty: they search if the definitions are long.
	ToolSearch string
	// SessionArgument adds an argument to every tool, with which a client that cannot send _meta names its session.
	SessionArgument bool
	// Structured says which clients get the structure of results.
	Structured Structured
	// Extension holds the embedding program's own tools, prompts and resources, in the types of the MCP library.
	Extension Extension
	// Observers see every call. They must not block.
	Observers []audit.Observer
	// AgentRunner completes the runner of agents in the setting agent.runner: a name, or an object as JSON. Nil disables
	// agents.
	AgentRunner func(h *Host, runner string, into *builtin.Env) error
	// Asker asks the owner of the machine when the client cannot ask a person. It may be nil.
	Asker Asker
	// Version is reported to clients.
	Version string
	// Log receives the log messages of the host. Nil disables them.
	Log *slog.Logger
}

// Roots returns the absolute paths of names, expanding "~". Without names it returns the working directory. The guard
// refuses the whole machine and the home directory.
func Roots(names []string) ([]string, error) {
	if len(names) == 0 {
		names = []string{"."}
	}
	home, _ := os.UserHomeDir()
	var roots []string
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "~"); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
			name = home + rest
		}
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("the root %s: %w", name, err)
		}
		if !slices.Contains(roots, dir) {
			roots = append(roots, dir)
		}
	}
	return roots, nil
}

// DefaultStateDir returns the state directory: $XDG_STATE_HOME/toolhost, by default ~/.local/state/toolhost;
// ~/Library/Application Support/toolhost on macOS; %LOCALAPPDATA%\toolhost on Windows.
func DefaultStateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolhost"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a state directory, set --state-dir: %w", err)
	}
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "toolhost"), nil
	case "windows":
		if dir := os.Getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "toolhost"), nil
		}
	}
	return filepath.Join(home, ".local", "state", "toolhost"), nil
}

// complete checks the configuration and fills in the defaults.
func (c Config) complete() (Config, error) {
	if len(c.Roots) == 0 {
		return c, errors.New("the host has no root: set --root")
	}
	for _, name := range c.Tools {
		if !slices.ContainsFunc(builtin.All(), func(d *builtin.Def) bool { return d.Name == name }) {
			return c, fmt.Errorf("--tools: there is no tool %q", name)
		}
	}
	c.Settings, c.MCPConfig, c.OwnFiles, c.Obeyed = slices.Clone(c.Settings), slices.Clone(c.MCPConfig),
		slices.Clone(c.OwnFiles), slices.Concat(c.Obeyed, c.MCPConfig)
	if err := checkToolSearch(c.ToolSearch); err != nil {
		return c, err
	}
	if c.StateDir == "" {
		dir, err := DefaultStateDir()
		if err != nil {
			return c, err
		}
		c.StateDir = dir
	}
	for _, path := range slices.Concat([]*string{&c.StateDir, &c.AuditLog}, pointers(c.Settings), pointers(c.MCPConfig),
		pointers(c.OwnFiles), pointers(c.Obeyed)) {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return c, fmt.Errorf("the path %s: %w", *path, err)
		}
		*path = abs
	}
	for _, file := range c.MCPConfig {
		if err := gateway.CheckFile(file); err != nil {
			return c, fmt.Errorf("--mcp-config: %w", err)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	return c, nil
}

// ownFiles returns the files outside of the state directory that the host opens by a configured name.
func (c *Config) ownFiles() []string {
	own := slices.Concat(c.OwnFiles, c.Obeyed)
	if c.AuditLog != "" {
		own = append(own, c.AuditLog)
	}
	return own
}

func pointers(all []string) []*string {
	var out []*string
	for i := range all {
		out = append(out, &all[i])
	}
	return out
}

// scratchDir returns the directory, in the user's cache directory, for the temporary files and caches of commands
// that work on these roots, or "" if there is none. It contains one directory per principal: see [scratchOf]. Where
// the home directory cannot be written, it is one of the system's temporary directory.
func scratchDir(roots []string) string {
	sum := sha256.Sum256([]byte(strings.Join(roots, "\x00")))
	name := hex.EncodeToString(sum[:8])
	if cache, err := os.UserCacheDir(); err == nil {
		if dir := filepath.Join(cache, "toolhost", name); writable(dir) {
			return dir
		}
	}
	parent := filepath.Join(os.TempDir(), fmt.Sprintf("toolhost-%d", os.Getuid()))
	if dir := filepath.Join(parent, name); writable(parent) && statedir.Check(parent) == nil && writable(dir) {
		return dir
	}
	return ""
}

// writable makes a directory and reports whether files can be created there.
func writable(dir string) bool {
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	try, err := os.MkdirTemp(dir, "try-")
	return err == nil && os.Remove(try) == nil
}

// scratchOf returns a principal's part of a scratch directory, and creates it if needed.
func scratchOf(dir, principal string) string {
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(principal))
	own := filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(own, 0o700); err != nil {
		return ""
	}
	return own
}

// ParseScopeKey parses an element of [Config.ScopeKeys]: NAME, NAME=shared or NAME=exact.
func ParseScopeKey(text string) (scope.Key, error) { return scope.ParseKey(text) }
