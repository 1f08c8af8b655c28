package settings

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"
)

// Kind is the level a source is at. Lower values take precedence.
type Kind uint8

// The levels, highest precedence first.
const (
	Managed     Kind = iota // set by the machine's administrator
	commandLine             // --settings, --allow, --deny
	Local                   // a root's .claude/settings.local.json and .toolhost/toolhost.local.json
	Project                 // a root's .claude/settings.json and .toolhost/toolhost.json
	User                    // the user's own files, remembered answers included
)

// String returns the name of the level as people say it: "managed", "user".
func (k Kind) String() string {
	switch k {
	case Managed:
		return "managed"
	case commandLine:
		return "command line"
	case Local:
		return "local"
	case Project:
		return "project"
	case User:
		return "user"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// inWorkspace reports whether files of this level lie in the workspace itself, where they may be part of a repository.
func (k Kind) inWorkspace() bool { return k == Local || k == Project }

// Entry is one written value and where it was written.
type Entry struct {
	// Text is the value: a rule, a path, a host, or a scalar in its JSON form
	// without quotes ("true", "plan").
	Text string
	Kind Kind
	// File is the file the value is in, or the flag it was given with
	// ("--deny"). "!" patterns carve out of earlier entries with the same File.
	File string
	// Line counts from 1; 0 when the value does not come from a file.
	Line int
	// Root is the directory that "/p" patterns are relative to: the workspace
	// root for local and project files and remembered answers, the directory of
	// the file for user files and --settings. It is empty for managed files and
	// for flags, whose "/p" patterns hold in each workspace root.
	Root string
	// Object is the whole entry as JSON, of a credential with the mode "mask". Masks are made of it.
	Object string
	// Client says that the file is one of Claude Code, which obeys it too.
	Client bool
}

// A Value is a setting that is not at its default.
type Value struct {
	Name string
	Entry
}

// Where returns where the entry was written: "file:line", or the flag.
func (e Entry) Where() string {
	if e.Line == 0 {
		return e.File
	}
	return e.File + ":" + strconv.Itoa(e.Line)
}

// The permission modes. A file that names another one gets [ModeDefault] and a
// warning.
const (
	ModePlan        = "plan"
	ModeDontAsk     = "dontAsk"
	ModeDefault     = "default"
	ModeAcceptEdits = "acceptEdits"
	ModeAuto        = "auto" // asks the classifier first, see [Classifier]
	ModeBypass      = "bypassPermissions"
)

// The values of settings that say what happens on a failure: of a hook (refuse or allow), or of a sandbox that cannot
// start.
const (
	OnFailureRefuse = "refuse"

	OnFailureDeny  = "deny"
	OnFailureAsk   = "ask"
	OnFailureAllow = "allow"
)

// The values of settings that are on where possible ("auto") or off.
const (
	auto = "auto"
	Off  = "off"
)

// Settings are the merged settings of all sources at one moment. It is never changed
// after it was made: one call sees one Settings. Callers must not write to it.
type Settings struct {
	// Allow, Ask and Deny hold the permission rules, unparsed, highest source first.
	Allow, Ask, Deny []Entry
	// Native are the names of client tools whose bare denies do not apply to our tools. NativeDeny are the denies
	// that were removed from Deny for that reason.
	Native, NativeDeny []Entry
	// AdditionalDirectories widen the boundary beyond the roots. A relative one
	// is relative to its Entry's Root.
	AdditionalDirectories []Entry

	// DefaultMode is one of the Mode constants; ModeAcceptEdits when no source
	// names one. It is never ModeBypass when DisableBypass is set.
	DefaultMode string
	// DefaultModeFrom is the source of DefaultMode; zero for the default.
	DefaultModeFrom Entry
	// DisableBypass forbids ModeBypass to everyone. Any source can set it.
	DisableBypass bool

	// Hooks are the hooks by event name, highest source first.
	Hooks map[string][]HookMatcher

	Sandbox Sandbox
	// Env is added to the environment of commands.
	Env map[string]string

	Clients    clientSettings
	Results    resultSettings
	Write      writeSettings
	Gate       gateSettings
	Bash       bashSettings
	Remote     remoteSettings
	Workspaces workspacesSettings
	Search     Search
	History    historySettings
	Web        webSettings
	Servers    serverSettings
	Agent      agentSettings
	// Approvals say how questions reach a person who is away from the console. A host reads them when it starts.
	Approvals Approvals
	// ToolsWith are further tools to serve (tools.with). A host reads it when it starts.
	ToolsWith []Entry

	// Values are the settings that a file or flag sets, by name, in the order of the keys. A setting that is a list
	// has one entry for each element.
	Values []Value
	// Warnings are problems that a person should correct. They stop no call.
	Warnings []warning
	// Broken holds an error for each file that could not be read or parsed
	// and has no last good content. While it is not empty every call must be
	// refused: it is not known which deny rules are missing.
	Broken []error

	// trusted is false when a workspace's loosening content was left out
	// because its user has not trusted it.
	Trusted bool
	// Untrusted is the content that was left out. Text holds key and value: "permissions.allow: Bash(make *)".
	Untrusted []Entry
}

// HookMatcher is one group of hooks and the tools it applies to.
type HookMatcher struct {
	// Matcher is as written; empty for every tool.
	Matcher string
	Hooks   []Hook
	// Source is the position of the group. Its Text is the matcher.
	Source Entry
}

// Hook is one hook, as written. A hook that cannot run (no command, unknown
// type) is kept, with a warning: dropped, it would silently not guard.
type Hook struct {
	Type    string `json:"type"`             // "command" or "http"
	Command string `json:"command,omitzero"` // for "command"
	// Args, when not nil, are the arguments of Command, which is then started as
	// it is, without a shell.
	Args []string `json:"args,omitzero"`
	// Shell reads Command: "bash", also when empty, or "powershell".
	Shell string `json:"shell,omitzero"`
	URL   string `json:"url,omitzero"` // for "http"
	// Headers are sent by an "http" hook. In them $NAME stands for the variables
	// that AllowedEnvVars names, and for nothing else.
	Headers        map[string]string `json:"headers,omitzero"`
	AllowedEnvVars []string          `json:"allowedEnvVars,omitzero"`
	// Async hooks are not waited for, and nothing they say counts.
	Async bool `json:"async,omitzero"`
	// Timeout is DefaultHookTimeout when none is written. Files state seconds.
	Timeout time.Duration `json:"-"`
	// If narrows the hook to calls that match this permission rule.
	If string `json:"if,omitzero"`
	// Uncontained hooks run outside of the sandbox, with the rights of the user ("contained": false). No hook of a
	// workspace file is.
	Uncontained bool `json:"-"`
	// Strict hooks refuse the call when they fail: those of managed settings, unless a managed file says otherwise, and
	// all with hooks.onFailure "refuse".
	Strict bool `json:"-"`
}

// DefaultHookTimeout bounds a hook that names no timeout of its own. Clients
// give up on a call after about 60 s, so a longer wait has no use.
const DefaultHookTimeout = 60 * time.Second

// Sandbox is how commands are contained (sandbox.*).
type Sandbox struct {
	// Enabled runs commands in the sandbox. Default true.
	Enabled bool
	// OffByChoice says that Enabled is false because of managed settings, the user's settings or the command line:
	// the user knows what is not enforced then.
	OffByChoice bool
	// FailIfUnavailable refuses to run commands at all without a sandbox
	// backend. Default false.
	FailIfUnavailable bool
	// AutoAllowBashIfSandboxed lets contained commands run unasked. Default true.
	AutoAllowBashIfSandboxed bool
	// AllowUnsandboxedCommands lets a call ask to run outside (it is always
	// asked). Default true.
	AllowUnsandboxedCommands bool
	// OnUnavailable says what happens to commands if a Read or Edit deny cannot be enforced: OnFailureAsk (default),
	// OnFailureDeny, or OnFailureAllow from sources outside of the workspace.
	OnUnavailable string
	// GitDirDenied keeps commands from writing the directory of the repository where it lies outside of the roots. Default
	// false.
	GitDirDenied bool
	// Seatbelt contains commands on macOS with sandbox-exec. Default false: nothing contains them there. It does not count
	// from the workspace.
	Seatbelt bool
	// ExcludedCommands run outside the sandbox, after the usual questions.
	ExcludedCommands []Entry
	Filesystem       sandboxFilesystem
	Credentials      sandboxCredentials
	Network          sandboxNetwork
}

// sandboxFilesystem holds the rules on files of contained commands (sandbox.filesystem.*).
// Paths: "/" and "//" absolute, "~/" home, otherwise relative to Entry.Root.
type sandboxFilesystem struct {
	AllowWrite, DenyWrite, DenyRead []Entry
	// AllowRead opens paths again below DenyRead.
	AllowRead []Entry
}

// sandboxCredentials holds the credentials hidden from contained commands (sandbox.credentials.*).
type sandboxCredentials struct {
	// Files are paths, as in sandboxFilesystem; EnvVars are names of variables. Commands get none of them, or a
	// sentinel instead.
	Files, EnvVars []Entry
	// MaskedVars and MaskedFiles are the entries of these lists with a sentinel.
	MaskedVars, MaskedFiles []Mask
	// SSHAgent lists destinations, see sshagent.
	SSHAgent []Entry
}

// sandboxNetwork holds the rules on connections of contained commands (sandbox.network.*).
type sandboxNetwork struct {
	AllowedDomains, DeniedDomains []Entry
	// Programs are further hosts that one program may reach, each as "PROGRAM: HOST".
	Programs []Entry
	// AllowPrivate lets allowed names resolve to addresses of private networks,
	// such as a company's registry. Default false.
	AllowPrivate bool
	// AllowLocalBinding lets commands listen on the host's loopback. Default false.
	AllowLocalBinding bool
	// ManagedDomainsOnly means that no other list, and no person who is asked, adds a host.
	ManagedDomainsOnly bool
	// PublishPorts publishes ports that commands listen on, on the host's
	// loopback. Nil, the default, means on for stdio and off for HTTP.
	PublishPorts *bool
	// AllowUnixSockets are the path sockets commands may reach.
	AllowUnixSockets []Entry
	// AllowAllUnixSockets opens all of them. Default false.
	AllowAllUnixSockets bool
}

// clientSettings limits what is sent to clients (clients.*).
type clientSettings struct {
	// MaxResult is how many characters of a result a client gets if its own limit is not known. Default 48,000.
	MaxResult int
}

// resultSettings says what results contain (results.*).
type resultSettings struct {
	// MaskSecrets masks keys and tokens in results of other servers and of the web. Default false.
	MaskSecrets bool
}

// writeSettings is how files are written (write.*).
type writeSettings struct {
	// Fsync makes each write durable against power loss, for about 4 ms each.
	// Default false.
	Fsync bool
}

// gateSettings is how the calls of one scope are ordered (gate.*).
type gateSettings struct {
	// SiblingAbort refuses the calls of the same assistant message that are queued after a Bash call that failed.
	// Default true.
	SiblingAbort bool
	// Parallel is how many concurrency-safe calls run at once. Default 10.
	Parallel int
}

// bashSettings is how commands are run (bash.*). Files state durations as "50s", "2m".
type bashSettings struct {
	// ForegroundWindow is how long a call is held before its command becomes a
	// background task. Default 50 s: client limits of 60 s are common.
	ForegroundWindow time.Duration
	// DefaultTimeout applies when a call names none. Default 2 min.
	DefaultTimeout time.Duration
	// MaxTimeout is the longest a call may ask for. Default 10 min.
	MaxTimeout time.Duration
	// EnvPass are path.Match patterns of the variables of the host that commands of remote callers get, in addition
	// to those without credentials.
	EnvPass []Entry
	// ExecGate is "auto", also when empty, or Off from sources outside the workspace.
	ExecGate string
	// MaxTasks is how many background tasks of one caller run at once. Default 256.
	MaxTasks int
}

// historySettings says which changes the history records (history.*).
type historySettings struct {
	// Commands is "auto", also when empty, or Off from sources outside the workspace.
	Commands string
}

// Search configures the indexes for searches (search.*). A host reads it when it starts.
type Search struct {
	// Index keeps an index of the contents of files, besides their list. Default true.
	Index bool
	// Memory is how many MiB of indexes and, up to a twentieth, of contents are kept. Default 256.
	Memory int
	// Roots is how many directories may have an index at the same time. Default 4.
	Roots int
	// Idle is the time without a search after which the index of a directory is released. Default 30 min.
	Idle time.Duration
}

// webSettings holds the settings of the web tools (web.*).
type webSettings struct {
	// AllowPrivate are hosts with a port, "wiki.corp:443", that may be reached at any address and port.
	AllowPrivate []Entry
	// IgnoreRobots also fetches pages that the robots.txt of a site excludes.
	IgnoreRobots bool
	// UserAgent replaces the name that is sent to servers. Empty: the host's own.
	UserAgent string
	// Search are the providers of WebSearch in order, each a JSON object. Empty: there is no WebSearch.
	Search []Entry
}

// remoteSettings is how long hosts for relays stay (remote.*).
type remoteSettings struct {
	// Linger is how long such a host stays without a client and a background task. Default 10 min.
	Linger time.Duration
}

// workspacesSettings limit what the server of workspaces keeps (workspaces.*).
type workspacesSettings struct {
	// Idle is how long a link without a call and a background task stays. Default 10 min.
	Idle time.Duration
	// PerCaller is how many workspaces a caller may have in use. Default 16.
	PerCaller int
}

// Approvals holds where questions of the console are announced to a person who is away (approvals.*). All are empty
// or all are set.
type Approvals struct {
	// Notify is the webhook, "https://…", or the topic of ntfy, "ntfy+https://…", that gets the first line of a question
	// and a link to it.
	Notify string
	// Origin is the address that the link begins with, "https://console.example.com". A proxy of the person's passes it
	// to Listen.
	Origin string
	// Listen is the loopback address that serves these links and nothing else.
	Listen string
}

// agentSettings holds the runner of the tool Agent and its limits (agent.*).
type agentSettings struct {
	// Runner is the name of a client, or an object as JSON. A zero Runner means that the tool is not served.
	Runner Entry
	// MaxTurns and MaxTokens end an agent that exceeds them. MaxTokens 0 means no limit. Default 50 turns.
	MaxTurns, MaxTokens int
	// MaxTime is the longest time that an agent may run. Default 30 min.
	MaxTime time.Duration
	// Depth is the depth to which agents may start agents; 1, the default, means that they start none.
	Depth int
	// WorktreeDirty brings changes that are not committed into new worktrees (agent.worktree.dirty). Default false.
	WorktreeDirty bool
}

// A warning is something in a file that a person should correct.
type warning struct {
	File string
	// Line and Column count from 1; 0 when the warning is about the whole file.
	Line, Column int
	Text         string
}

// String renders the warning for a log: "file:line:column: text".
func (w warning) String() string { return position(w.File, w.Line, w.Column) + ": " + w.Text }

// parseError is a file that cannot be read or understood as a whole.
type parseError struct {
	File string
	// Line and Column count from 1, columns in bytes; 0 when the file could not
	// be read at all.
	Line, Column int
	Err          error
}

func (e *parseError) Error() string {
	return fmt.Sprintf("settings file %s: %v", position(e.File, e.Line, e.Column), e.Err)
}

// Unwrap returns the cause.
func (e *parseError) Unwrap() error { return e.Err }

func position(file string, line, column int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// Config says where to look. Paths should be absolute.
type Config struct {
	// Roots are the workspace roots.
	Roots []string
	// Home is the user's home directory. Empty: no ~/.claude is read.
	Home string
	// UserConfigDir is the directory that holds our toolhost/ directory, as
	// os.UserConfigDir returns it. Empty: none is read.
	UserConfigDir string
	// StateDir holds the trust store. Empty: nothing is trusted by it.
	StateDir string
	// ManagedDir is the directory that holds the administrator's directories
	// for Claude Code and for us. Empty: the platform's (/etc on Linux).
	ManagedDir string
	// Files are given by --settings. A later one goes before an earlier one.
	Files []string
	// Allow and Deny are the rules given by --allow and --deny.
	Allow, Deny []string
	// TrustWorkspace trusts the content of the roots' files at the first reading.
	TrustWorkspace bool
	// TrustDigest trusts only the workspaces whose loosening content has a digest that begins with it, in hexadecimal; see
	// [review].Digest. Empty: none.
	TrustDigest string
	// Withheld reports whether a file of a workspace counts as missing now, because a running command may have
	// created it. Nil means that no file does.
	Withheld func(file string) bool
	// Settled returns the name of the file to read instead of a file of a workspace, while a command runs that may
	// have changed that file; "" if it did not exist before. Nil means that files are read by their names.
	Settled func(file string) string
	// Log receives problems that keep a running server from checking the sources and that do not change the settings
	// in force. Nil: [slog.Default].
	Log *slog.Logger
}

func (cfg Config) log() *slog.Logger {
	if cfg.Log == nil {
		return slog.Default()
	}
	return cfg.Log
}
