package hook

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/settings"
)

// Config holds what hooks need to run.
type Config struct {
	// Start starts the command of a hook, for a call with this context. An error refuses the call, unless it says that
	// the program does not exist or cannot be executed: commands may be able to cause it.
	Start func(context.Context, Spec) (Process, error)

	// Outside reports whether the command of a hook runs outside of the sandbox, with the rights of the server. Only
	// then can its answer allow a call: tools and commands may decide what a contained hook answers. An error refuses
	// the call. Nil: all run outside.
	Outside func(settings.Hook) (bool, error)

	// Dir is the project's directory, absolute. Commands start in it, and find it
	// in CLAUDE_PROJECT_DIR.
	Dir string

	// Match reports whether a call matches a permission rule, for the "if" of a
	// hook. It should report true when it cannot tell, so that the hook runs.
	// Nil matches everything.
	Match func(rule string, call Call) bool

	// Failed is called with each hook that failed. Nil: nothing is called.
	Failed func(settings.Hook, error)

	// Log receives failures and the messages of hooks; nil for none.
	Log *slog.Logger
}

// Call is the call that the hooks are asked about.
type Call struct {
	SessionID string
	Cwd       string // the session's working directory
	Mode      string // [settings.ModeDefault] or another mode of that package
	Tool      string // the name it is listed under
	ToolUseID string
	// Input is the tool's input as it will be used, a JSON object: after binding,
	// so that hooks judge what runs and not a spelling of it. Empty for {}.
	Input json.RawMessage
}

// An action is what hooks demand for a call. Of several actions the strictest counts; a greater value is stricter.
type action uint8

// The actions.
const (
	none  action = iota // no hook said anything: the rules decide
	Allow               // a person need not be asked; rules still hold
	Ask                 // a person must be asked
	Deny                // the call must not run
)

// String returns the action as hooks write it; "none" for None.
func (a action) String() string {
	switch a {
	case none:
		return "none"
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// A Decision is the combined decision of the hooks of a call.
type Decision struct {
	Action action
	// Reason is for the model and its user. It is set for Ask and Deny.
	Reason string
	// UpdatedInput replaces the whole input; nil to keep it. It is an object, but
	// otherwise unchecked: bind and judge it from the start.
	UpdatedInput json.RawMessage
	// Context is text of hooks for the model, and the hooks that failed.
	Context []string
	// From is the position, "file:line", of the hook that decided, or else of a hook that rewrote the input.
	From string
	// Void is the position of a hook whose Allow does not count, because the hook runs contained.
	Void string
}

// After is the combined answer of the hooks after a call.
type After struct {
	// Block says that a hook objects to the outcome, because of Reason. The tool has run nevertheless.
	Block  bool
	Reason string
	// Context is text of hooks for the model, and the hooks that failed.
	Context []string
	// Output replaces the response; nil to keep it.
	Output json.RawMessage
	// From is the position of the hook that blocks, or else of a hook that replaces the response.
	From string
}

// A Runner runs hooks. It may be used by several goroutines at once.
type Runner struct {
	start   func(context.Context, Spec) (Process, error)
	outside func(settings.Hook) (bool, error)
	client  *http.Client
	env     []string
	dir     string
	match   func(string, Call) bool
	failing func(settings.Hook, error)
	log     *slog.Logger

	drain, response time.Duration // drainTime and answerTime, but for tests

	life       context.Context // of the hooks that are not waited for
	end        context.CancelFunc
	background sync.WaitGroup
}

// New returns a Runner, which must be closed. It accesses nothing: a fault in cfg appears when a hook is run, as the
// failure of that hook.
func New(cfg Config) *Runner {
	r := &Runner{start: cfg.Start, outside: cfg.Outside, dir: cfg.Dir, match: cfg.Match, failing: cfg.Failed,
		log: cfg.Log, env: environ(os.Environ(), cfg.Dir), drain: drainTime, response: answerTime}
	if r.outside == nil {
		r.outside = func(settings.Hook) (bool, error) { return true, nil }
	}
	if r.match == nil {
		r.match = func(string, Call) bool { return true }
	}
	if r.failing == nil {
		r.failing = func(settings.Hook, error) {}
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.life, r.end = context.WithCancel(context.Background())
	// Redirects are not followed: another host must not answer for a guard, and headers may hold secrets.
	r.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return r
}

// Close ends the hooks that are not waited for. No hook may be run any more.
func (r *Runner) Close() {
	r.end()
	r.background.Wait()
}

// Pre runs the PreToolUse hooks of a call that is about to run. The failure of a hook is reported, and refuses the
// call if the hook is strict. The call is also refused if the context ends in the meantime, or if two hooks rewrite
// the input in different ways.
func (r *Runner) Pre(ctx context.Context, set []settings.HookMatcher, c Call) Decision {
	e := c.event(settings.PreToolUse)
	return r.decide(ctx, e, r.run(ctx, set, c, e))
}

// Request runs the PermissionRequest hooks of a call that a person would be asked about, for the reason given. Allow
// and Deny answer for the person; None leaves the answer to the person. Ask is never returned. A hook that fails
// gives no answer. If the context ends in the meantime, the call is refused.
func (r *Runner) Request(ctx context.Context, set []settings.HookMatcher, c Call, reason string) Decision {
	e := c.event(settings.PermissionRequest)
	e.Reason = reason
	return r.decide(ctx, e, r.run(ctx, set, c, e))
}

// Classify asks the classifier whether a call may run without asking a person, for the reason given. After a failure,
// or any answer but Allow, a person is asked.
func (r *Runner) Classify(ctx context.Context, set []settings.HookMatcher, c Call, reason string) Decision {
	e := c.event(settings.Classifier)
	e.Reason = reason
	return r.decide(ctx, e, r.run(ctx, set, c, e))
}

// Denied runs the PermissionDenied hooks of a call that was refused for the reason given, and returns when they have
// ended. Their answers are ignored.
func (r *Runner) Denied(ctx context.Context, set []settings.HookMatcher, c Call, reason string) {
	e := c.event(settings.PermissionDenied)
	e.Reason = reason
	for _, o := range r.run(ctx, set, c, e) {
		if o.err != nil {
			r.failed(e.Name, o)
		}
	}
}

// Post runs the PostToolUse hooks of a call that has succeeded within d. A hook that fails is reported in the
// context. If the hooks should run for a call whose client has gone, ctx must outlive the context of the call.
func (r *Runner) Post(ctx context.Context, set []settings.HookMatcher, c Call, response json.RawMessage,
	d time.Duration) After {
	e := c.event(settings.PostToolUse)
	e.Response, e.Millis = response, milliseconds(d)
	return r.review(e, r.run(ctx, set, c, e))
}

// Failure runs the PostToolUseFailure hooks of a call that has failed with errText
// within d. Otherwise it is as [Runner.Post].
func (r *Runner) Failure(ctx context.Context, set []settings.HookMatcher, c Call, errText string,
	d time.Duration) After {
	e := c.event(settings.PostToolUseFailure)
	e.Error, e.Millis = errText, milliseconds(d)
	return r.review(e, r.run(ctx, set, c, e))
}

// run runs the hooks that match, in parallel, and returns their outcomes in the order in which they are written.
func (r *Runner) run(ctx context.Context, set []settings.HookMatcher, c Call, e event) []outcome {
	hooks := r.matching(set, c)
	if len(hooks) == 0 {
		return nil
	}
	body, err := e.encode()
	outcomes := make([]outcome, len(hooks))
	var running sync.WaitGroup
	for i, h := range hooks {
		outcomes[i].chosen = h
		if h.err == nil && err != nil {
			h.err = hostError{err} // the client chose the input
		}
		if h.Async {
			r.runDetached(ctx, h, e.Name, body)
			continue
		}
		running.Go(func() { outcomes[i].response, outcomes[i].err = r.runOne(ctx, h, e.Name, body) })
	}
	running.Wait()
	return outcomes
}

// runDetached runs a hook and does not wait for it.
func (r *Runner) runDetached(ctx context.Context, h chosen, event string, body []byte) {
	r.background.Go(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(r.life, cancel)()
		if _, err := r.runOne(ctx, h, event, body); err != nil {
			r.failed(event, outcome{chosen: h, err: err})
		}
	})
}
