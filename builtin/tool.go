// Package builtin declares the tools that the host itself has, such as Read, Edit and Bash, one file each. [All] lists
// them. A [Runtime] has what the tools of one host share, and an [Env] is what a call gets.
//
// A tool is data and a function, Plan, which changes nothing: it resolves the files that a call is about, and returns
// the effects of the call with a function, Run, that acts on exactly these files. The package knows neither MCP nor
// transports; the pipeline in mcpserver/pipeline.go is the only caller of a Run.
//
// A new tool needs a file that declares it, a document in builtin/doc, and rarely a new kind of [guard.Effect]. A
// program that embeds the host completes a [Tool] of its own with [Define].
package builtin

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
)

//go:embed doc/*.md
var documents embed.FS

// maxDocument is the longest tool description, in characters: Claude Code cuts descriptions there.
const maxDocument = 2048

// Hints are the MCP annotations of a tool. The zero value is the worst case: not read-only, destructive
// through its absence of a promise, open to the world.
type Hints struct {
	ReadOnly   bool // changes nothing
	Additive   bool // only adds, never overwrites or deletes
	Idempotent bool // doing it twice is doing it once
	Closed     bool // reaches nothing but the files of this host
}

// A Tool describes one tool: what the model sees, what a call would touch, and how it runs. In is its
// typed input. The zero tool is the safest one: exclusive at the gate, not read-only, destructive.
type Tool[In any] struct {
	// Name is the name that clients use.
	Name string
	// Doc is the document that models read. Empty: doc/<lower-case name>.md of this package.
	Doc string
	// Title is a short name for people.
	Title string
	// Brief says in a few words what the tool does, in the words that models search for.
	Brief string
	// Core marks a tool that clients are asked to show to a model at once, even if they let it search for other
	// tools.
	Core  bool
	Hints Hints
	// Permission is the right that a caller needs. The zero value is that of running commands.
	Permission guard.Permission
	// Limit is the longest result in characters. Longer ones are saved on disk and cut. Zero means that the tool limits
	// its results itself.
	Limit int
	// MaxResult is the longest text, in characters, of a tool that limits its results itself. 0 if it is not known.
	MaxResult int
	// Uncancelable marks a tool with a short and atomic run, which a cancelled call completes.
	Uncancelable bool
	// SkipQueue lets calls pass next to the gate: they neither wait nor make others wait.
	SkipQueue bool
	// SeesHeld marks a tool that works on files of the workspace: it sees held files as commands do.
	SeesHeld bool
	// OptIn marks a tool that is served only if it is requested by name.
	OptIn bool
	// NeedsPerson marks a tool that is listed only if a person can be asked.
	NeedsPerson bool
	// NeedsForm marks a tool that is listed only if a form can be shown to a person, by the client or at the console.
	NeedsForm bool
	// Enabled reports whether the tool can work on this host. Nil means always.
	Enabled func(*Runtime) bool
	// Configured reports whether the settings have what the tool needs. Otherwise it is not listed. Nil means always.
	Configured func(*guard.Policy) bool
	// Refine adds to the schema what struct tags cannot say: ranges, enumerations, defaults.
	Refine func(*jsonschema.Schema)
	// Forms converts arguments that models send in another form than the schema has, if only one meaning is possible.
	Forms func(given map[string]json.RawMessage)
	// ConcurrencySafe reports whether a call with this input may run concurrently with other such calls. It gets only
	// the bound input, so that the gate can decide before anything is accessed. Nil means never.
	ConcurrencySafe func(In) bool
	// Plan examines the call and changes nothing. The model gets its error.
	Plan func(context.Context, *Env, In) (Plan, error)
}

// A Plan is the effects of a call, and the function that acts on exactly the files that they name.
type Plan struct {
	Intent guard.Intent
	Run    func(context.Context) (Result, error)
}

// A Def is a [Tool] with its input type erased.
type Def struct {
	Name, Title, Doc, Brief string
	Core                    bool
	Hints                   Hints
	Permission              guard.Permission
	Limit                   int
	MaxResult               int
	Uncancelable            bool
	SkipQueue               bool
	OptIn                   bool
	NeedsPerson, NeedsForm  bool
	Schema                  *jsonschema.Schema

	// The fields below are for tools of other servers. RawSchema is served instead of Schema, unchanged.
	RawSchema json.RawMessage
	// Server is the server that the tool belongs to; "" for a tool of this host.
	Server string
	// Listed is the name on the list of tools, if it differs from Name. Rules, hooks and the audit log use Name.
	Listed string
	// Unlisted keeps the tool off the list; a call says why it does not run.
	Unlisted bool
	// View is the _meta.ui of the tool: the view that clients of MCP Apps show.
	View json.RawMessage
	// AlwaysLoad requests that the tool is listed even if others are left to a search.
	AlwaysLoad bool

	bind    func(json.RawMessage) (*Call, error)
	enabled func(*Runtime) bool

	configured func(*guard.Policy) bool
}

// Enabled reports whether the tool can work on this host. Other tools are not listed.
func (d *Def) Enabled(box *Runtime) bool { return d.enabled == nil || d.enabled(box) }

// Configured reports whether the settings have what the tool needs.
func (d *Def) Configured(p *guard.Policy) bool { return d.configured == nil || d.configured(p) }

// Bind validates and decodes raw arguments. Strings that spell numbers, booleans or lists are converted. Any other
// fault is an error that names the field, the given value and the expected one.
func (d *Def) Bind(raw json.RawMessage) (*Call, error) { return d.bind(raw) }

// A Call is one bound, not yet permitted, invocation.
type Call struct {
	// ConcurrencySafe reports whether the call may run concurrently with others that may.
	ConcurrencySafe bool
	// Args are the arguments for rules on a parameter: for a tool of this host, the scalar ones at the top level.
	Args map[string]any
	// Input is the whole bound input as JSON, in the names and types of the schema.
	Input func() (json.RawMessage, error)

	plan func(context.Context, *Env) (Plan, error)
}

// Plan calls the Plan of the tool.
func (c *Call) Plan(ctx context.Context, env *Env) (Plan, error) {
	p, err := c.plan(ctx, env)
	p.Intent.Args = c.Args
	return p, err
}

var declared = []*Def{agentTool, askUserTool, Bash, editTool, enterPlanModeTool, enterWorktreeTool, exitPlanModeTool,
	exitWorktreeTool, globTool, grepTool, listResourcesTool, notebookEditTool, Read, readResourceTool, skillTool,
	taskOutputTool, taskStopTool, webFetchTool, webSearchTool, writeTool}

// All returns every tool, ordered by name, including those that are served only on request.
func All() []*Def {
	return slices.SortedFunc(slices.Values(declared), func(a, b *Def) int { return strings.Compare(a.Name, b.Name) })
}

// declare completes a tool of [All]. It panics on a mistake in the declaration, so that no host starts with it.
func declare[In any](t Tool[In]) *Def {
	d, err := Define(t)
	if err != nil {
		panic(fmt.Sprintf("builtin: tool %q: %v", t.Name, err))
	}
	return d
}

// Define completes a tool. It returns an error for a mistake in the declaration.
func Define[In any](t Tool[In]) (*Def, error) {
	if t.Doc == "" {
		doc, err := documents.ReadFile("doc/" + strings.ToLower(t.Name) + ".md")
		if err != nil {
			return nil, err
		}
		t.Doc = string(doc)
	}
	if n := len([]rune(t.Doc)); n > maxDocument {
		return nil, fmt.Errorf("its document has %d characters, more than %d", n, maxDocument)
	}
	if t.Plan == nil {
		return nil, fmt.Errorf("it has no Plan")
	}
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, err
	}
	if t.Refine != nil {
		t.Refine(schema)
	}
	for name, a := range alias.Arguments(t.Name) {
		if schema.Properties[name] != nil || a.Field != "" && schema.Properties[a.Field] == nil {
			return nil, fmt.Errorf("the alias %s is a field itself, or its field does not exist", name)
		}
	}
	d := &Def{
		Name: t.Name, Title: t.Title, Doc: strings.TrimSpace(t.Doc), Brief: t.Brief, Core: t.Core, Hints: t.Hints,
		Permission: t.Permission,
		Limit:      t.Limit, MaxResult: t.MaxResult, Uncancelable: t.Uncancelable,
		SkipQueue: t.SkipQueue, OptIn: t.OptIn,
		NeedsPerson: t.NeedsPerson, NeedsForm: t.NeedsForm, Schema: schema, enabled: t.Enabled,
		configured: t.Configured,
	}
	b := newBinder(t.Name, schema, reflect.TypeFor[In]())
	b.forms = t.Forms
	d.bind = func(raw json.RawMessage) (*Call, error) {
		var in In
		args, err := b.bind(raw, reflect.ValueOf(&in).Elem())
		if err != nil {
			return nil, err
		}
		return &Call{
			ConcurrencySafe: t.ConcurrencySafe != nil && t.ConcurrencySafe(in),
			Args:            args,
			Input:           func() (json.RawMessage, error) { return json.Marshal(in) },
			plan: func(ctx context.Context, env *Env) (Plan, error) {
				plan := func(ctx context.Context, env *Env) (Plan, error) { return t.Plan(ctx, env, in) }
				if t.SeesHeld {
					plan = func(ctx context.Context, env *Env) (Plan, error) {
						return seesHeld(ctx, env, func(ctx context.Context, env *Env) (Plan, error) { return t.Plan(ctx, env, in) })
					}
				}
				p, err := plan(ctx, env)
				p.Intent.Tool = t.Name
				return p, err
			},
		}, nil
	}
	return d, nil
}

// always lets every call of a tool run concurrently with others.
func always[In any](In) bool { return true }

// External completes the definition d of a tool of another server or program. plan gets the arguments as one JSON
// object; those for another server are converted to its schema as those of the tools of this host are. The effects of
// such a tool are not known: its plan has the effect [guard.CallTool], so that an allow rule or a person must permit
// each call. concurrent means that calls may run concurrently with others.
func External(d Def, concurrent bool, plan func(ctx context.Context, env *Env, args json.RawMessage) (Plan,
	error)) *Def {
	schema := looseSchemaOf(d.RawSchema)
	d.bind = func(raw json.RawMessage) (*Call, error) {
		args, text, err := externalArgs(&d, schema, raw)
		if err != nil {
			return nil, &bindError{Tool: d.Name, Problems: []string{err.Error()}}
		}
		return &Call{
			ConcurrencySafe: concurrent,
			Args:            args,
			Input:           func() (json.RawMessage, error) { return text, nil },
			plan: func(ctx context.Context, env *Env) (Plan, error) {
				p, err := plan(ctx, env, text)
				p.Intent.Tool = d.Name
				return p, err
			},
		}, nil
	}
	return &d
}
