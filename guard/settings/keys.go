package settings

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is the JSON a key takes.
type form uint8

const (
	formList     form = iota // array of strings
	formChoice               // one of key.order
	formSwitch               // true or false
	formNumber               // positive integer
	formDuration             // string, as time.ParseDuration reads it
	formText                 // string on one line
	formRunner               // string on one line, or an object
)

// reach defines the sources from which a key applies.
type reach uint8

const (
	anySource     reach = iota // workspace files that loosen need trust
	notWorkspace               // workspace files never loosen
	onlyManaged                // only managed files count
	anySourceOnce              // one source can set it, whatever higher ones say
)

// key is one setting: the table below drives parsing, merging, trust, live
// reload and the published schema alike, so that none of them can forget one.
type key struct {
	name string // path from the top of the file: "sandbox.enabled"
	doc  string
	form form
	from reach
	// tightens is for lists: their entries forbid.
	tightens bool
	// least and most are for numbers: the smallest, at least 1, and the greatest, 0 if there is none.
	least, most int
	// member is for lists of objects: the member that holds the entry.
	member string
	// objects is for lists whose entries are objects, kept as JSON.
	objects bool
	// known is for lists: the values that an entry can have, or the member "provider" of an entry that is an object.
	known []string
	// raw is for lists whose entries are JSON: "object" or "array", as which the list is written.
	raw string
	// named is for lists: they are an object of arrays, and the entry for TEXT in the array NAME is "NAME: TEXT".
	named bool
	// order is for choices and switches: the values from tightest to loosest.
	// A switch without one is neutral: it counts as loosening.
	order []string
	// alias is another word for the choice in aliased.
	alias, aliased string
	// unknown is the choice that replaces a misspelt one. Empty: it is skipped.
	unknown string
	def     string
	list    func(*Settings) *[]Entry
	set     func(*Settings, Entry)
}

// tighter reports whether the second value forbids more than the first. If the first is not a value of the key, only
// the strictest one is tighter.
func (k *key) tighter(was, is string) bool {
	w, i := k.rank(was), k.rank(is)
	if w < 0 {
		return i == 0
	}
	return i >= 0 && i < w
}

// tightest reports whether value is the strictest one,
// so that writing it never loosens.
func (k *key) tightest(value string) bool { return k.rank(value) == 0 }

// rank returns the place of value in the order, -1 if it has none.
func (k *key) rank(value string) int { return slices.Index(k.order, value) }

// countsFrom reports whether a value that loosens may apply at this level.
func (k *key) countsFrom(level Kind) bool {
	switch k.from {
	case onlyManaged:
		return level == Managed
	case notWorkspace:
		return !level.inWorkspace()
	}
	return true
}

// strict orders the two values of a switch. on is the value that forbids more.
func strict(on bool) []string {
	if on {
		return []string{"true", "false"}
	}
	return []string{"false", "true"}
}

func flag(field func(*Settings) *bool) func(*Settings, Entry) {
	return func(s *Settings, e Entry) { *field(s) = e.Text == "true" }
}

func choice(field func(*Settings) *string) func(*Settings, Entry) {
	return func(s *Settings, e Entry) { *field(s) = e.Text }
}

func duration(field func(*Settings) *time.Duration) func(*Settings, Entry) {
	return func(s *Settings, e Entry) {
		if d, err := time.ParseDuration(e.Text); err == nil { // checked when parsed
			*field(s) = d
		}
	}
}

// Names that other files of this package refer to.
const (
	keyAllow          = "permissions.allow"
	keyDeny           = "permissions.deny"
	keyMode           = "permissions.defaultMode"
	keyManagedRules   = "allowManagedPermissionRulesOnly"
	keyManagedHooks   = "allowManagedHooksOnly"
	keyManagedDomains = "sandbox.network.allowManagedDomainsOnly"
	keyManagedReads   = "sandbox.filesystem.allowManagedReadPathsOnly"
	keyDomains        = "sandbox.network.allowedDomains"
	keyPrograms       = "sandbox.network.programs"
	keyAllowRead      = "sandbox.filesystem.allowRead"
	keyNoHooks        = "disableAllHooks"
	keyOnFailure      = "hooks.onFailure"
)

// keys returns the table of every setting but hooks and env, whose values are
// objects of their own.
func keys() []key {
	return slices.Concat(permissionKeys(), sandboxKeys(), networkKeys(), ownKeys(), searchKeys(), webKeys(),
		serverKeys())
}

func permissionKeys() []key {
	bypass := flag(func(s *Settings) *bool { return &s.DisableBypass })
	disable := func(s *Settings, e Entry) { bypass(s, Entry{Text: strconv.FormatBool(e.Text == "disable")}) }
	return []key{
		{name: keyAllow, form: formList, doc: "Rules that let a call pass unasked.",
			list: func(s *Settings) *[]Entry { return &s.Allow }},
		{name: "permissions.ask", form: formList, tightens: true, doc: "Rules that make a person decide.",
			list: func(s *Settings) *[]Entry { return &s.Ask }},
		{name: keyDeny, form: formList, tightens: true, doc: "Rules that refuse a call. They win over all others.",
			list: func(s *Settings) *[]Entry { return &s.Deny }},
		{name: keyNative, form: formList, from: notWorkspace,
			doc: "Tools of Claude Code, such as Bash. Bare denies of these names in Claude Code's settings apply to Claude " +
				"Code's own tools, not to those of toolhost.",
			list: func(s *Settings) *[]Entry { return &s.Native }},
		{name: "permissions.additionalDirectories", form: formList, doc: "Directories beyond the roots that tools may use.",
			list: func(s *Settings) *[]Entry { return &s.AdditionalDirectories }},
		// Before the mode, which depends on it.
		{name: "permissions.disableBypassPermissionsMode", form: formChoice, from: anySourceOnce, order: []string{"disable"},
			doc: "Forbids the mode bypassPermissions. One source is enough.", set: disable},
		{name: "disableBypassPermissionsMode", form: formChoice, from: anySourceOnce, order: []string{"disable"},
			doc: "The same as permissions.disableBypassPermissionsMode.", set: disable},
		{name: keyMode, form: formChoice, def: ModeAcceptEdits, unknown: ModeDefault, alias: "manual", aliased: ModeDefault,
			order: []string{ModePlan, ModeDontAsk, ModeDefault, ModeAcceptEdits, ModeAuto, ModeBypass},
			doc:   "The permission mode a session starts in.",
			set:   func(s *Settings, e Entry) { s.DefaultMode, s.DefaultModeFrom = e.Text, e }},
		{name: keyManagedRules, form: formSwitch, from: onlyManaged, def: "false",
			doc: "Only managed files may allow. Ask and deny rules still count from everywhere."},
		{name: keyManagedHooks, form: formSwitch, from: onlyManaged, def: "false",
			doc: "Only hooks of managed files run."},
		{name: keyNoHooks, form: formSwitch, order: strict(false), def: "false",
			doc: "Turns hooks off; managed hooks only when a managed file says so."},
		{name: keyOnFailure, form: formChoice, from: notWorkspace, order: []string{OnFailureRefuse, OnFailureAllow}, def: OnFailureAllow,
			unknown: OnFailureRefuse,
			doc:     "Whether a call runs whose PreToolUse hook fails. For managed hooks, refuse is the default."},
	}
}

// sandboxSwitch and sandboxList make keys below sandbox.
func sandboxSwitch(name, doc, def string, order []string, field func(*Settings) *bool) key {
	return key{name: "sandbox." + name, doc: doc, form: formSwitch, def: def, order: order, set: flag(field)}
}

func sandboxList(name, doc string, tightens bool, field func(*Settings) *[]Entry) key {
	return key{name: "sandbox." + name, doc: doc, form: formList, tightens: tightens, list: field}
}

func sandboxKeys() []key {
	on, list := sandboxSwitch, sandboxList
	return []key{
		{name: "sandbox.enabled", doc: "Run commands in the sandbox.", form: formSwitch, def: "true", order: strict(true), set: func(s *Settings, e Entry) {
			s.Sandbox.Enabled = e.Text == "true"
			s.Sandbox.OffByChoice = !s.Sandbox.Enabled && !e.Kind.inWorkspace()
		}},
		on("failIfUnavailable", "Refuse to run commands at all when no sandbox works here.", "false", strict(true),
			func(s *Settings) *bool { return &s.Sandbox.FailIfUnavailable }),
		on("autoAllowBashIfSandboxed", "Run contained commands unasked.", "true", strict(false),
			func(s *Settings) *bool { return &s.Sandbox.AutoAllowBashIfSandboxed }),
		on("allowUnsandboxedCommands", "Let a call ask to run outside the sandbox.", "true", strict(false),
			func(s *Settings) *bool { return &s.Sandbox.AllowUnsandboxedCommands }),
		{name: "sandbox.onUnavailable", form: formChoice, from: notWorkspace, def: OnFailureAsk, unknown: OnFailureAsk,
			order: []string{OnFailureDeny, OnFailureAsk, OnFailureAllow},
			doc:   "What becomes of commands when a Read or Edit deny cannot be enforced.",
			set:   choice(func(s *Settings) *string { return &s.Sandbox.OnUnavailable })},
		{name: "sandbox.gitDir", form: formChoice, def: "allow", unknown: OnFailureDeny, order: []string{OnFailureDeny, OnFailureAllow},
			doc: "Whether commands may write the directory of git where it lies outside the roots.",
			set: func(s *Settings, e Entry) { s.Sandbox.GitDirDenied = e.Text == OnFailureDeny }},
		{name: "sandbox.seatbelt", form: formSwitch, from: notWorkspace, def: "false",
			doc: "Contain commands on macOS with sandbox-exec, untried on a real machine. Read at start.",
			set: flag(func(s *Settings) *bool { return &s.Sandbox.Seatbelt })},
		list("excludedCommands", "Commands that run outside the sandbox.", false,
			func(s *Settings) *[]Entry { return &s.Sandbox.ExcludedCommands }),
		list("filesystem.allowWrite", "Further paths commands may write. Without wildcards.", false,
			func(s *Settings) *[]Entry { return &s.Sandbox.Filesystem.AllowWrite }),
		list("filesystem.denyWrite", "Paths commands in the sandbox must not write. Edit and Write may; see "+
			"permissions.deny.", true,
			func(s *Settings) *[]Entry { return &s.Sandbox.Filesystem.DenyWrite }),
		list("filesystem.denyRead", "Paths commands in the sandbox must not read. Read and the others may; see "+
			"permissions.deny.", true,
			func(s *Settings) *[]Entry { return &s.Sandbox.Filesystem.DenyRead }),
		list("filesystem.allowRead", "Paths below denyRead that commands may read all the same. Without wildcards.",
			false,
			func(s *Settings) *[]Entry { return &s.Sandbox.Filesystem.AllowRead }),
		{name: "sandbox.credentials.files", form: formList, tightens: true, member: "path",
			doc: "Files and directories commands in the sandbox must not read, or, with the mode \"mask\", as a copy, see " +
				"credentials.md.",
			list: func(s *Settings) *[]Entry { return &s.Sandbox.Credentials.Files }},
		{name: "sandbox.credentials.envVars", form: formList, tightens: true, member: "name",
			doc:  "Variables commands in the sandbox do not get, or, with the mode \"mask\", a sentinel.",
			list: func(s *Settings) *[]Entry { return &s.Sandbox.Credentials.EnvVars }},
		{name: "sandbox.credentials.sshAgent", form: formList, from: notWorkspace,
			doc:  "As whom commands log in by SSH with your agent.",
			list: func(s *Settings) *[]Entry { return &s.Sandbox.Credentials.SSHAgent }},
		{name: keyManagedReads, form: formSwitch, from: onlyManaged, def: "false",
			doc: "Only allowRead of managed files counts."},
	}
}

func networkKeys() []key {
	on, list := sandboxSwitch, sandboxList
	return []key{
		list("network.allowedDomains", "Hosts commands may reach, and services of this machine (localhost:5432).",
			false,
			func(s *Settings) *[]Entry { return &s.Sandbox.Network.AllowedDomains }),
		{name: keyPrograms, form: formList, named: true,
			doc:  "Further hosts by the program that may reach them. What the program starts may not: it has its own.",
			list: func(s *Settings) *[]Entry { return &s.Sandbox.Network.Programs }},
		list("network.deniedDomains", "Hosts commands must not reach, besides those that a WebFetch rule denies.", true,
			func(s *Settings) *[]Entry { return &s.Sandbox.Network.DeniedDomains }),
		{name: keyManagedDomains, form: formSwitch, from: onlyManaged, def: "false",
			doc: "Only allowedDomains and programs of managed files count.",
			set: func(s *Settings, e Entry) { s.Sandbox.Network.ManagedDomainsOnly = e.Text == "true" }},
		on("network.allowPrivate", "Let allowed names lead to addresses of private networks, such as a company's registry.",
			"false", strict(false),
			func(s *Settings) *bool { return &s.Sandbox.Network.AllowPrivate }),
		on("network.allowLocalBinding", "Let commands listen on the host's loopback: publishes their ports over HTTP too.",
			"false", strict(false),
			func(s *Settings) *bool { return &s.Sandbox.Network.AllowLocalBinding }),
		{name: "sandbox.network.publishPorts", form: formSwitch, order: strict(false),
			doc: "Publish ports commands listen on, on the host's loopback. By default on for stdio, off for HTTP.",
			set: func(s *Settings, e Entry) { on := e.Text == "true"; s.Sandbox.Network.PublishPorts = &on }},
		list("network.allowUnixSockets", "Unix sockets of programs outside the sandbox, and directories of them, that "+
			"commands may connect to.", false,
			func(s *Settings) *[]Entry { return &s.Sandbox.Network.AllowUnixSockets }),
		on("network.allowAllUnixSockets", "Let commands connect to every Unix socket that has a path.", "false",
			strict(false),
			func(s *Settings) *bool { return &s.Sandbox.Network.AllowAllUnixSockets }),
	}
}

func ownKeys() []key {
	return []key{
		{name: "clients.maxResult", form: formNumber, least: 1000, def: "48000",
			doc: "How many characters of a result clients get whose own bound is not known.",
			set: func(s *Settings, e Entry) { s.Clients.MaxResult, _ = strconv.Atoi(e.Text) }},
		{name: "results.maskSecrets", form: formSwitch, order: strict(true), def: "false",
			doc: "Mask keys and tokens in results of other servers and of the web. Without it, results only say that they " +
				"hold some.",
			set: flag(func(s *Settings) *bool { return &s.Results.MaskSecrets })},
		{name: "write.fsync", form: formSwitch, order: strict(true), def: "false",
			doc: "Make each written file durable against power loss, for about 4 ms each.",
			set: flag(func(s *Settings) *bool { return &s.Write.Fsync })},
		{name: "gate.siblingAbort", form: formSwitch, order: strict(true), def: "true",
			doc: "A Bash call that fails cancels what the same message queued after it.",
			set: flag(func(s *Settings) *bool { return &s.Gate.SiblingAbort })},
		{name: "gate.parallel", form: formNumber, def: "10", doc: "How many concurrency-safe calls run at once.",
			set: func(s *Settings, e Entry) { s.Gate.Parallel, _ = strconv.Atoi(e.Text) }},
		{name: "bash.env.pass", form: formList, from: notWorkspace,
			doc: "Variables of the host's environment that commands of callers over HTTP get, besides those that hold no " +
				"credentials (PATH, LANG, GOPATH and the like). With wildcards.",
			list: func(s *Settings) *[]Entry { return &s.Bash.EnvPass }},
		{name: "bash.execGate", form: formChoice, from: notWorkspace, order: []string{auto, Off}, def: auto, unknown: auto,
			doc: "Judge the programs that commands start when they start, where rules speak of commands. With off, the text " +
				"of a command alone is judged.",
			set: choice(func(s *Settings) *string { return &s.Bash.ExecGate })},
		{name: "tools.with", form: formList, from: notWorkspace,
			doc: "Tools that are served in addition, by name: AskUserQuestion, EnterPlanMode, ExitPlanMode, ListMcpResources, " +
				"ReadMcpResource, Skill, EnterWorktree, ExitWorktree. A host reads it when it starts.",
			list: func(s *Settings) *[]Entry { return &s.ToolsWith }},
		{name: "agent.runner", form: formRunner, from: notWorkspace,
			doc: "The agent that the tool Agent runs: claude, codex, the name of another client, or an object with command, " +
				"args, model, resume, env, hosts, config and parse. " +
				"Without it there is no such tool.",
			set: func(s *Settings, e Entry) { s.Agent.Runner = e }},
		{name: "agent.maxTurns", form: formNumber, from: notWorkspace, def: "50", doc: "How many turns an agent takes at most.",
			set: func(s *Settings, e Entry) { s.Agent.MaxTurns, _ = strconv.Atoi(e.Text) }},
		{name: "agent.maxTokens", form: formNumber, from: notWorkspace, doc: "How many tokens, in and out, an agent uses at most, where its runner tells them.",
			set: func(s *Settings, e Entry) { s.Agent.MaxTokens, _ = strconv.Atoi(e.Text) }},
		{name: "agent.maxTime", form: formDuration, from: notWorkspace, def: "30m", doc: "How long an agent runs at most.",
			set: duration(func(s *Settings) *time.Duration { return &s.Agent.MaxTime })},
		{name: "agent.depth", form: formNumber, from: notWorkspace, most: 3, def: "1", doc: "How deep agents start agents, 3 at most.",
			set: func(s *Settings, e Entry) { s.Agent.Depth, _ = strconv.Atoi(e.Text) }},
		{name: "agent.worktree.dirty", form: formSwitch, from: notWorkspace, def: "false",
			doc: "Copy uncommitted and untracked changes into new worktrees of Agent and EnterWorktree.",
			set: flag(func(s *Settings) *bool { return &s.Agent.WorktreeDirty })},
		{name: "history.commands", form: formChoice, from: notWorkspace, order: []string{auto, Off}, def: auto, unknown: auto,
			doc: "Keep what files held before commands changed them, so that it can be taken back.",
			set: choice(func(s *Settings) *string { return &s.History.Commands })},
		{name: "approvals.notify", form: formText, from: notWorkspace,
			doc: "The webhook or topic (ntfy+https://SERVER/TOPIC) that is told of questions at the console, with a link to " +
				"each. A host reads it when it starts.",
			set: choice(func(s *Settings) *string { return &s.Approvals.Notify })},
		{name: "approvals.origin", form: formText, from: notWorkspace,
			doc: "The HTTPS address of the links, which your proxy passes to approvals.listen.",
			set: choice(func(s *Settings) *string { return &s.Approvals.Origin })},
		{name: "approvals.listen", form: formText, from: notWorkspace,
			doc: "The loopback address that serves the links, and nothing else.",
			set: choice(func(s *Settings) *string { return &s.Approvals.Listen })},
		{name: "bash.foregroundWindow", form: formDuration, def: "50s",
			doc: "How long a call waits before its command becomes a background task.",
			set: duration(func(s *Settings) *time.Duration { return &s.Bash.ForegroundWindow })},
		{name: "bash.defaultTimeout", form: formDuration, def: "2m", doc: "Time limit of a command that names none.",
			set: duration(func(s *Settings) *time.Duration { return &s.Bash.DefaultTimeout })},
		{name: "bash.maxTimeout", form: formDuration, def: "10m", doc: "The longest time limit a call may ask for.",
			set: duration(func(s *Settings) *time.Duration { return &s.Bash.MaxTimeout })},
		{name: "bash.maxTasks", form: formNumber, def: "256", doc: "How many background tasks of one caller run at once.",
			set: func(s *Settings, e Entry) { s.Bash.MaxTasks, _ = strconv.Atoi(e.Text) }},
		{name: "remote.linger", form: formDuration, from: notWorkspace, def: "10m",
			doc: "How long a host that toolhost remote started stays without a client and a background task.",
			set: duration(func(s *Settings) *time.Duration { return &s.Remote.Linger })},
		{name: "workspaces.idle", form: formDuration, from: notWorkspace, def: "10m",
			doc: "How long toolhost http --workspaces keeps its link to a workspace without a call and a background task.",
			set: duration(func(s *Settings) *time.Duration { return &s.Workspaces.Idle })},
		{name: "workspaces.perCaller", form: formNumber, from: notWorkspace, def: "16",
			doc: "How many workspaces one caller of toolhost http --workspaces has in use.",
			set: func(s *Settings, e Entry) { s.Workspaces.PerCaller, _ = strconv.Atoi(e.Text) }},
	}
}

func searchKeys() []key {
	number := func(name, def, doc string, field func(*Search) *int) key {
		return key{name: "search." + name, form: formNumber, def: def, doc: doc,
			set: func(s *Settings, e Entry) { *field(&s.Search), _ = strconv.Atoi(e.Text) }}
	}
	return []key{
		{name: "search.index", form: formSwitch, order: strict(false), def: "true",
			doc: "Keep an index of the contents of files, so that most need not be read in a search.",
			set: flag(func(s *Settings) *bool { return &s.Search.Index })},
		number("memory", "256", "How many MiB of indexes and, up to a twentieth, of contents searches keep in memory.",
			func(s *Search) *int { return &s.Memory }),
		number("roots", "4", "How many directories may have an index at once.",
			func(s *Search) *int { return &s.Roots }),
		{name: "search.idle", form: formDuration, def: "30m",
			doc: "The time without a search after which the index of a directory is freed.",
			set: duration(func(s *Settings) *time.Duration { return &s.Search.Idle })},
	}
}

func webKeys() []key {
	return []key{
		{name: "web.allowPrivate", form: formList, from: notWorkspace,
			doc: "Hosts with their port, as wiki.corp:443, that WebFetch reaches although their addresses are private or " +
				"their port is unusual.",
			list: func(s *Settings) *[]Entry { return &s.Web.AllowPrivate }},
		{name: "web.robots", form: formChoice, from: notWorkspace, order: []string{"keep", "ignore"}, def: "keep", unknown: "keep",
			doc: "Keep to what robots.txt of a site says, or ignore it.",
			set: func(s *Settings, e Entry) { s.Web.IgnoreRobots = e.Text == "ignore" }},
		{name: "web.userAgent", form: formText, from: notWorkspace, doc: "What WebFetch and WebSearch call themselves to servers.",
			set: choice(func(s *Settings) *string { return &s.Web.UserAgent })},
		{name: "web.search", form: formList, from: notWorkspace, objects: true, known: []string{"searxng", "brave", "command"},
			doc: "Who answers WebSearch, in order: {provider: searxng, url}, {provider: brave, keyFile or keyEnv}, {provider: " +
				"command, command}.",
			list: func(s *Settings) *[]Entry { return &s.Web.Search }},
	}
}

// ignoredKeys are keys of Claude Code at the top of the file that do not concern tools. They cause no warning: many
// such warnings would hide the one about a misspelt "permissions".
const ignoredKeys = `$schema agent apiKeyHelper attribution autoMemoryEnabled autoUpdatesChannel
	availableModels awsAuthRefresh awsCredentialExport cleanupPeriodDays companyAnnouncements
	allowManagedMcpServersOnly blockedMarketplaces channelsEnabled
	disableAutoMode effortLevel enabledPlugins extraKnownMarketplaces fastMode feedbackSurveyRate fileSuggestion
	forceLoginMethod forceLoginOrgUUID forceRemoteSettingsRefresh
	includeCoAuthoredBy includeGitInstructions language model modelOverrides
	otelHeadersHelper outputStyle plansDirectory pluginConfigs pluginTrustMessage prefersReducedMotion
	respectGitignore showThinkingSummaries showTurnDuration skipDangerousModePermissionPrompt
	skillOverrides skipWebFetchPreflight spinnerTipsEnabled spinnerTipsOverride spinnerVerbs
	statusLine strictKnownMarketplaces strictPluginOnlyCustomization teammateMode
	terminalProgressBarEnabled theme tui useAutoModeDuringPlan viewMode voice voiceEnabled verbose
	workspace worktree alwaysThinkingEnabled autoMode permissions.skipDangerousModePermissionPrompt
	permissions.disableAutoMode advisorModel agentPushNotifEnabled allowedChannelPlugins
	autoCompactEnabled autoCompactWindow autoConnectIde autoDreamEnabled autoMemoryDirectory
	autoScrollEnabled autoUpdates autoUploadSessions awaySummaryEnabled claudeMd claudeMdExcludes
	daemonColdStart defaultShell disableSideloadFlags doneMeansMerged editorMode
	fastModePerSessionOptIn feedbackSurveyState fileCheckpointingEnabled forceLoginGatewayUrl
	inputNeededNotifEnabled isolatePeerMachines minimumVersion parentSettingsBehavior
	pluginSuggestionMarketplaces precomputeCompactionEnabled preferredNotifChannel
	promptSuggestionEnabled remote remoteControlAtStartup requiredMaximumVersion
	requiredMinimumVersion showClearContextOnPlanAccept showMessageTimestamps
	skipWorkflowUsageWarning sshConfigs switchModelsOnFlag syntaxHighlightingDisabled
	terminalTitleFromRename todoFeatureEnabled totalTokensReminder totalTokensReminderBudget
	ultracode wheelScrollAccelerationEnabled wslInheritsWindowsSettings`

// unsupportedKeys are keys of Claude Code that affect tools and hooks and that we do not support. Each causes a
// warning, because its author expects an effect.
const unsupportedKeys = `sandbox.network.httpProxyPort sandbox.network.socksProxyPort
	sandbox.network.allowMachLookup sandbox.enableWeakerNestedSandbox
	sandbox.enableWeakerNetworkIsolation sandbox.ignoreViolations sandbox.ripgrep
	sandbox.credentials.allowPlaintextInject sandbox.credentials.awsPairs sandbox.credentials.sigv4
	sandbox.enabledPlatforms sandbox.socatPath
	sandbox.network.tlsTerminate allowedHttpHookUrls httpHookAllowedEnvVars
	permissions.blockReadsOutsideWorkingDirectories permissions.blockWritesOutsideWorkingDirectories`

// keySet is the key table, indexed for parsing.
type keySet struct {
	keys        []key
	byName      map[string]*key
	groups      map[string]bool // objects: "permissions", "sandbox.network"
	ignored     map[string]bool
	unsupported map[string]bool
}

func newKeySet() *keySet {
	v := &keySet{keys: keys(), byName: map[string]*key{}, groups: map[string]bool{},
		ignored: words(ignoredKeys), unsupported: words(unsupportedKeys)}
	for i := range v.keys {
		k := &v.keys[i]
		v.byName[k.name] = k
		for name := k.name; ; {
			dot := strings.LastIndexByte(name, '.')
			if dot < 0 {
				break
			}
			name = name[:dot]
			v.groups[name] = true
		}
	}
	return v
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// A Default is a setting, its effect, and the value that it has if no file or flag sets it; "" if it has none.
type Default struct{ Name, Value, Does string }

// Defaults returns all settings by name.
func Defaults() (all []Default) {
	for _, k := range keys() {
		all = append(all, Default{k.name, k.def, k.doc})
	}
	slices.SortFunc(all, func(a, b Default) int { return strings.Compare(a.Name, b.Name) })
	return all
}
