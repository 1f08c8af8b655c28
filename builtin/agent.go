package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/toolhost/toolhost/builtin/internal/agent"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
)

// maxPrompt is the longest prompt of an agent, in bytes.
const maxPrompt = 256 << 10

// An agentRunner is a program that runs agents without a person, as data. It reads its prompt from the standard
// input.
type agentRunner struct {
	Name    string `json:"-"`
	Command string `json:"command"`
	// Args are its arguments. The element {model} is replaced by Model, and {resume} by Resume; in these, {model} and
	// {id} are replaced by the values. In every argument, {file} is a file with the entry of this host, and {command}
	// and {socket} are parts of the command of that entry: command connect socket.
	Args   []string `json:"args"`
	Model  []string `json:"model"`
	Resume []string `json:"resume"`
	// Parse is the format of its output: see [agent.NewParser].
	Parse string `json:"parse"`
	// Env are variables for the runner, Hosts the hosts of its model, and Config the directories of its
	// configuration.
	Env    map[string]string `json:"env"`
	Hosts  []string          `json:"hosts"`
	Config []string          `json:"config"`
	// Cell adds what the program needs to the specification of its cell.
	Cell func(spec *CellSpec) error `json:"-"`
}

// argv returns the arguments of a run.
func (r agentRunner) argv(model, session string) []string {
	argv := []string{r.Command}
	for _, arg := range r.Args {
		switch {
		case arg == "{model}" && model != "":
			argv = append(argv, replaced(r.Model, "{model}", model)...)
		case arg == "{resume}" && session != "":
			argv = append(argv, replaced(r.Resume, "{id}", session)...)
		case arg != "{model}" && arg != "{resume}":
			argv = append(argv, arg)
		}
	}
	return argv
}

func replaced(args []string, name, by string) (all []string) {
	for _, arg := range args {
		all = append(all, strings.ReplaceAll(arg, name, by))
	}
	return all
}

// A knownAgent is the data that the task of an agent keeps, so that the agent can be continued.
type knownAgent struct {
	def        agent.Definition
	runnerName string
	isolation  string
	session    string // of the runner; "" if it has named none. It does not change once the task has ended
}

// An agentChild describes an agent to the host: it is a principal whose rights and rules are those of its caller, or
// narrower.
type agentChild struct {
	ID, Type string
	// Mode is the permission mode, if it is stricter than the caller's. ReadOnly means that the cell writes no files
	// of the workspace.
	Mode     string
	ReadOnly bool
	// Tools are the tools of the agent; nil means all. The tools in Denied are removed. Servers are the other servers
	// whose tools it may use; nil means all.
	Tools, Denied, Servers []string
	// Call is done when the call that started it has been answered.
	Call context.Context
}

// agentOffer is what the host offers for agents. The zero value offers none.
type agentOffer struct {
	// Find fills in Runner from the settings. Nil means that no agent can be started.
	Find   func() error
	Runner agentRunner
	// Dirs are the directories of definitions, the one with precedence first.
	Dirs func() []string
	// MaxTurns, MaxTokens and MaxTime limit an agent. MaxTokens 0 means that tokens are not limited.
	MaxTurns, MaxTokens int
	MaxTime             time.Duration
	// Start starts an agent. The caller calls end before it closes the cell: end stops what the agent has started
	// with the tools of this host.
	Start func(spec CellSpec) (cell *Cell, end func(), err error)
}

// Principal returns the principal of the agent. The principal of the zero value is the prefix of all of them.
func (c agentChild) Principal() string { return "agent:" + c.ID }

// AgentTypes returns the list of agent definitions for the description of the tool. The error says which files are
// wrong.
func (*Runtime) AgentTypes(dirs []string) (list string, wrong error) {
	all, wrong := agent.Load(dirs, alias.Tool)
	return agent.List(all), wrong
}

// agentInput is the input of [agentTool].
type agentInput struct {
	Description string `json:"description" jsonschema:"the task in 3 to 5 words"`
	Prompt      string `json:"prompt" jsonschema:"what to do and what to report"`
	Type        string `json:"subagent_type,omitempty" jsonschema:"default: general"`
	Model       string `json:"model,omitempty" jsonschema:"another model"`
	Background  bool   `json:"run_in_background,omitempty" jsonschema:"return at once, with the id of a task"`
	Isolation   string `json:"isolation,omitempty" jsonschema:"none, or worktree: work on a copy in a branch of its own"`
	Resume      string `json:"resume,omitempty" jsonschema:"the id of an agent that has ended, to continue it"`
	Name        string `json:"name,omitempty" jsonschema:"a label"`
}

// agentTool runs another agent.
var agentTool = declare(Tool[agentInput]{
	Name:       "Agent",
	Title:      "Run an agent",
	Brief:      "sub-agents",
	Limit:      bashLimit,
	Configured: func(p *guard.Policy) bool { return p.Commands().RunsAgents() },
	ConcurrencySafe: func(in agentInput) bool {
		return in.Background || in.Isolation == isolationWorktree
	},
	Plan: func(_ context.Context, env *Env, in agentInput) (Plan, error) {
		run, err := in.bound(env)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.RunAgent{Type: run.def.Name, Runner: run.runner.Name,
				Task: in.Description}}},
			Run: run.run,
		}, nil
	},
})

// bound returns the run that a call requests.
func (in agentInput) bound(env *Env) (*agentRun, error) {
	if env.Agents.Find == nil {
		return nil, errors.New("no agent can be run here: a person must set agent.runner in the user settings, such as " +
			"\"claude\"")
	}
	switch n := len(in.Prompt); {
	case strings.TrimSpace(in.Prompt) == "":
		return nil, errors.New("prompt: expected what the agent is to do, got an empty text")
	case n > maxPrompt:
		return nil, fmt.Errorf("prompt: expected at most %d bytes, got %d: write it to a file and name the file in the "+
			"prompt", maxPrompt, n)
	case strings.TrimSpace(in.Description) == "":
		return nil, errors.New("description: expected the task in 3 to 5 words, got an empty text")
	}
	if err := env.Agents.Find(); err != nil {
		return nil, err
	}
	runner := env.Agents.Runner
	r := &agentRun{knownAgent: &knownAgent{runnerName: runner.Name}, env: env, in: in, runner: runner,
		prompt: in.Prompt}
	var err error
	if r.parse, err = agent.NewParser(runner.Parse); err != nil {
		return nil, fmt.Errorf("agent.runner: %w", err)
	}
	if in.Resume != "" {
		if err := r.continues(); err != nil {
			return nil, err
		}
	} else if r.def, err = findAgent(env, cmp.Or(in.Type, "general")); err != nil {
		return nil, err
	} else if r.def.Prompt != "" {
		r.prompt = r.def.Prompt + "\n\n" + in.Prompt
	}
	r.model = cmp.Or(in.Model, r.def.Model)
	if len(runner.Model) == 0 {
		if r.model = ""; in.Model != "" {
			return nil, fmt.Errorf("model: the runner %s does not support it: omit it", runner.Name)
		}
	}
	if strings.HasPrefix(r.model, "-") ||
		strings.ContainsFunc(r.model, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return nil, fmt.Errorf("model: expected the name of a model, got %q", r.model)
	}
	r.isolation = cmp.Or(in.Isolation, r.isolation, r.def.Isolation, isolationNone)
	return r, checkIsolation(r.isolation)
}

// findAgent returns the definition of a type.
func findAgent(env *Env, name string) (agent.Definition, error) {
	all, _ := agent.Load(env.Agents.Dirs(), alias.Tool) // the doctor reports wrong definitions
	var names []string
	near, least := "", len(name)/2+1
	for _, d := range all {
		if strings.EqualFold(d.Name, name) || strings.EqualFold(d.Name, strings.TrimSuffix(strings.ToLower(name),
			"-purpose")) {
			return d, nil
		}
		if n := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(d.Name)); n < least {
			near, least = d.Name, n
		}
		names = append(names, d.Name)
	}
	hint := ""
	if near != "" {
		hint = " (did you mean " + near + "?)"
	}
	return agent.Definition{}, fmt.Errorf("subagent_type: there is no agent %q%s; there are %s", clippedName(name),
		hint, strings.Join(names, ", "))
}

// clippedName returns the beginning of a name that a model has given.
func clippedName(name string) string { return firstRunes(name, 60) }

// continues makes the run continue an agent that has ended.
func (r *agentRun) continues() error {
	var known *knownAgent
	t, err := r.env.Runtime.tasks.Find(r.env.Principal, r.in.Resume)
	if err == nil {
		known, _ = t.Data.(*knownAgent)
	}
	switch {
	case known == nil:
		return fmt.Errorf("resume: there is no agent %q: it never existed, was removed, or belongs to another caller. Start "+
			"a new one", clippedName(r.in.Resume))
	case !t.Over():
		return fmt.Errorf("resume: the agent %s still runs: wait for it with TaskOutput", t.ID)
	case len(r.runner.Resume) == 0 || known.runnerName != r.runner.Name:
		return fmt.Errorf("resume: the runner %s cannot continue the agent %s: start a new one", r.runner.Name, t.ID)
	case known.session == "":
		return fmt.Errorf("resume: the agent %s ended before it could be continued: start a new one", t.ID)
	case r.in.Type != "" && !strings.EqualFold(r.in.Type, known.def.Name):
		return fmt.Errorf("resume: the agent %s is of the type %s, not %q: leave subagent_type out", t.ID,
			known.def.Name, clippedName(r.in.Type))
	case r.in.Isolation != "" && r.in.Isolation != known.isolation:
		return fmt.Errorf("resume: the agent %s has the isolation %s, not %q: leave isolation out", t.ID,
			known.isolation, clippedName(r.in.Isolation))
	}
	again := *known
	r.id, r.knownAgent = t.ID, &again
	return nil
}

// Fill replaces the placeholders in the arguments and variables of a runner.
func (r agentRunner) Fill(spec *CellSpec, file, command, socket string) {
	with := strings.NewReplacer("{file}", file, "{command}", command, "{socket}", socket)
	for i := range spec.Argv {
		spec.Argv[i] = with.Replace(spec.Argv[i])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		spec.Env = append(spec.Env, name+"="+with.Replace(r.Env[name]))
	}
}
