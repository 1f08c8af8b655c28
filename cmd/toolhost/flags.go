package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/telemetry"
	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

// hostFlags are the flags of every command that opens a host.
type hostFlags struct {
	roots    []string
	settings []string
	allow    []string
	deny     []string
	tools    []string
	more     []string // tools in addition
	servers  []string // files of other MCP servers
	trust    trustFlag
	stateDir string
	observe  observeFlags
	scopes   scopeFlags
	console  consoleFlags
	record   hostRecord
	address  string // where the host listens; empty over stdio

	structured string
	toolSearch string
}

// A trustFlag is the value of --trust-workspace: true, false, or the beginning of a digest.
type trustFlag struct {
	all    bool
	digest string
}

// minTrustDigest is the least length of such a beginning, as in abbreviated names of commits.
const minTrustDigest = 7

func (f *trustFlag) Set(value string) error {
	if all, err := strconv.ParseBool(value); err == nil {
		*f = trustFlag{all: all}
		return nil
	}
	digest := strings.ToLower(value)
	if len(digest) < minTrustDigest || strings.Trim(digest, "0123456789abcdef") != "" {
		return fmt.Errorf("expected true, false or at least %d hexadecimal digits of the digest that toolhost trust shows",
			minTrustDigest)
	}
	*f = trustFlag{digest: digest}
	return nil
}

func (f *trustFlag) String() string {
	return cmp.Or(f.digest, strconv.FormatBool(f.all))
}

// Type is that of a flag whose value can be left out. The help shows no word after the flag, because a value is given
// with =.
func (f *trustFlag) Type() string { return "bool" }

func (f *hostFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.addRoots(flags, "a `DIR` the tools work in; repeatable (default: the working directory)")
	f.addRules(flags)
	f.addTools(cmd)
	f.addServers(flags)
	f.addState(flags)
	f.observe.add(flags)
}

// addRules adds the flags of settings and rules.
func (f *hostFlags) addRules(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.settings, "settings", nil, "a settings `FILE` with rules; repeatable")
	flags.StringArrayVar(&f.allow, "allow", nil, "a `RULE` to allow, such as \"Bash(go test:*)\"; repeatable")
	flags.StringArrayVar(&f.deny, "deny", nil, "a `RULE` to deny, such as \"Read(.env)\"; repeatable")
	flags.Var(&f.trust, "trust-workspace", "let the settings files in the roots allow things, not only forbid them; with "+
		"=DIGEST, only those that toolhost trust shows with it")
	flags.Lookup("trust-workspace").NoOptDefVal = "true"
}

// addTools adds the flags that choose the tools.
func (f *hostFlags) addTools(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.tools, "tools", nil, "serve only these tools, a `LIST` separated by commas")
	completeFlag(cmd, "tools", allTools)
	flags.StringSliceVar(&f.more, "with", nil, "serve these tools in addition, a `LIST` separated by commas: "+
		"AskUserQuestion, EnterPlanMode, ExitPlanMode, ListMcpResources, ReadMcpResource, Skill, EnterWorktree, ExitWorktree")
	completeFlag(cmd, "with", allTools)
}

// addRoots adds the flag of the roots.
func (f *hostFlags) addRoots(flags *pflag.FlagSet, usage string) {
	flags.StringArrayVar(&f.roots, "root", nil, usage)
}

// addState adds the flag of what outlives the process.
func (f *hostFlags) addState(flags *pflag.FlagSet) {
	flags.StringVar(&f.stateDir, "state-dir", "", "the `DIR` for results, read state, history and journals (default: "+
		"$XDG_STATE_HOME/toolhost)")
}

// addStructured adds the flag of structured results, which only clients of MCP get.
func (f *hostFlags) addStructured(flags *pflag.FlagSet) {
	flags.StringVar(&f.structured, "structured", "auto",
		"who gets structuredContent with the text: `auto`, always or never; auto leaves out clients that would show it to a model in place of the text")
	flags.StringVar(&f.toolSearch, "tool-search", "auto",
		"whether models find the tools of other servers with ToolSearch in place of listing them: on, off or `auto`; auto is on when they are long")
}

// addServers adds the flag of other servers.
func (f *hostFlags) addServers(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.servers, "mcp-config", nil,
		"a `FILE` of your own with mcpServers, whose tools are served too; repeatable")
}

// config is hostConfig for commands that fail if the file system of a root does not answer.
func (f *hostFlags) config(names []string, remote bool) (mcpserver.Config, error) {
	cfg, err := f.hostConfig(names, remote)
	if err == nil {
		err = answering(cfg.Roots)
	}
	return cfg, err
}

// hostConfig makes the host's configuration of the flags; names are further roots, given after the flags.
func (f *hostFlags) hostConfig(names []string, remote bool) (mcpserver.Config, error) {
	if err := f.checkTools(); err != nil {
		return mcpserver.Config{}, err
	}
	named := append(append([]string{}, f.roots...), names...)
	roots, err := mcpserver.Roots(named)
	if err != nil {
		return mcpserver.Config{}, err
	}
	hostprogram.Distrust(roots...) // before anything is looked for in PATH
	if len(named) == 0 {
		hostprogram.DistrustWorkspace()
	}
	cfg := mcpserver.Config{
		Roots: roots, RootsNamed: len(named) > 0, Settings: f.settings, Allow: f.allow, Deny: f.deny,
		TrustWorkspace: f.trust.all, TrustDigest: f.trust.digest, Tools: f.tools, With: f.more, MCPConfig: f.servers,
		StateDir: f.stateDir,
		Remote:   remote, OnWarm: ownprocess.TrimWhenIdle, Observers: []audit.Observer{rssTrimmer{}},
		Version: versionString(), AgentRunner: agentRunner,
	}
	if err := f.observe.apply(&cfg); err != nil {
		return mcpserver.Config{}, err
	}
	if f.observe.serving {
		cfg.Observers = append(cfg.Observers, &f.record)
	}
	f.console.apply(&cfg)
	certificates, keys := telemetry.Files()
	cfg.Obeyed = certificates
	if err := protectFiles(&cfg, append(keys, f.observe.metrics.TokenFile)...); err != nil {
		return mcpserver.Config{}, err
	}
	if f.structured != "" { // a command that serves no client of MCP has no such flag
		if cfg.Structured, err = mcpserver.ParseStructured(f.structured); err != nil {
			return mcpserver.Config{}, usageError{fmt.Errorf("--structured: %w", err)}
		}
	}
	if !slices.Contains([]string{"", "auto", "on", "off"}, f.toolSearch) {
		return mcpserver.Config{}, usageError{fmt.Errorf("--tool-search: expected on, off or auto, got %q",
			f.toolSearch)}
	}
	cfg.ToolSearch = f.toolSearch
	err = f.scopes.apply(&cfg)
	return cfg, err
}

// allTools are the names of the tools of this program.
func allTools() (names []string) {
	for _, d := range builtin.All() {
		names = append(names, d.Name)
	}
	return names
}

// toolNames are the names of the tools that the flags ask for.
func (f *hostFlags) toolNames() []string {
	if len(f.tools) > 0 {
		return f.tools
	}
	return allTools()
}

// checkTools finds a name in --tools or --with that no tool has.
func (f *hostFlags) checkTools() error {
	known := allTools()
	for flag, names := range map[string][]string{"--tools": f.tools, "--with": f.more} {
		for _, name := range names {
			if !slices.Contains(known, name) && (flag == "--tools" || alias.Tool(name) == "") {
				return usageError{fmt.Errorf("%s: there is no tool %q%s; known are %s", flag, name,
					didYouMean(name, known), strings.Join(known, ", "))}
			}
		}
	}
	return nil
}

// oneCallWait is how long the command of one call waits until its workspace has been read: a large one takes seconds.
const oneCallWait = 10 * time.Second

// with opens a host for one call while do runs. names are further roots.
func (f *hostFlags) with(names []string, do func(*mcpserver.Host) error) error {
	cfg, err := f.config(names, false)
	if err != nil {
		return err
	}
	cfg.CommandWait = oneCallWait
	return open(cfg, do)
}

// withState is with for what reads or changes the state directory, which must be the user's own.
func (f *hostFlags) withState(do func(*mcpserver.Host) error) error {
	if _, err := f.ownState(); err != nil {
		return err
	}
	return f.with(nil, do)
}

// open opens a host while do runs.
func open(cfg mcpserver.Config, do func(*mcpserver.Host) error) error {
	if err := listen.ClearEnvironment(); err != nil {
		return err
	}
	host, err := mcpserver.Open(cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(host), host.Close())
}

// argument reads a command's JSON argument; "-" takes it from the standard input.
func argument(cmd *cobra.Command, text string) ([]byte, error) {
	if text != "-" {
		return []byte(text), nil
	}
	raw, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), mcpserver.MaxMessage+1))
	if err == nil && len(raw) > mcpserver.MaxMessage {
		err = fmt.Errorf("they are longer than %d bytes", mcpserver.MaxMessage)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	return raw, nil
}
