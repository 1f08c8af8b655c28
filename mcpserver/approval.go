package mcpserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// A Question asks a person whether a call may run.
type Question struct {
	// Message says what the call would do, and which rule requires approval.
	Message string
	// Always says that "always allow" is offered: the rules that would be remembered.
	Always []string
	// State binds the answer to the call. It is opaque, signed, and valid once, within [question.Lifetime].
	State string
	// Input is the whole input that the call would run with, as JSON.
	Input json.RawMessage
	// Dir is where the command would run; empty when there is none.
	Dir string
	// Verdict says why approval is required, part by part.
	Verdict guard.Verdict
	// ScopeOnly says that "always allow" holds in the scope of the call only, until the host ends.
	ScopeOnly bool
}

// about sets what the question's call would do.
func (q *Question) about(call *builtin.Call, plan builtin.Plan) {
	q.Input, _ = call.Input() // cannot fail: it was bound from JSON
	if c := plan.Intent.Command(); c != nil {
		q.Dir = c.Dir.String()
	}
}

// The decisions of a person.
const (
	AllowOnce   = "allow once"
	AlwaysAllow = "always allow" // only where the question offers it
	DenyIt      = "deny"
)

// Decisions returns the answers that the question offers. No other decision counts.
func (q *Question) Decisions() []string { return decisions(q.Always) }

// decisions returns the answers to a question that offers to remember these rules.
func decisions(always []string) []string {
	if len(always) == 0 {
		return []string{AllowOnce, DenyIt}
	}
	return []string{AllowOnce, AlwaysAllow, DenyIt}
}

// An Answer is what a person said to a [Question].
type Answer struct {
	State    string
	Decision string // one of those that the question offers; anything else, such as "", is a refusal
	Reason   string // of a refusal, for the agent
	By       string // who put the question to a person: [ByClient] or [byConsole]
}

// What puts questions to a person, as the audit log names it.
const (
	ByClient  = "client"
	byConsole = "console"
)

// An approver issues questions to persons, and checks their answers.
type approver struct {
	questions   *approvals.Store
	always      alwaysAllowed
	suspensions suspensions
	asker       Asker // nil: the operator cannot be asked
	policies    *policies
	log         *slog.Logger
	// uncontained is set once a command has run that nothing contained and no person approved.
	uncontained atomic.Bool
}

// decide returns the final verdict on a call that requires approval. Without an answer it returns a question if
// the client can ask it, and a refusal otherwise. An answer counts only for the call that it was given to.
func (p *approver) decide(a *Admission, req Request, v guard.Verdict) (guard.Verdict, *Question) {
	if v.Action != guard.Ask {
		return v, nil
	}
	rules := v.AllowRules()
	if !a.scope.Exact || !isOperator(a.principal) {
		rules = nil // several agents may share it: an approval is for one of them
	}
	call := digest(a.scope.Asked(a.session != ""), req, v, rules)
	if req.Answer == nil {
		if !req.CanAsk {
			return refusal(v, "a person must approve it, and no one can be asked here"), nil
		}
		return v, &Question{Message: questionText(req.Tool, v, rules), Always: rules, State: p.questions.Issue(a.principal, call), Verdict: v}
	}
	if err := p.questions.Redeem(req.Answer.State, call); err != nil {
		return refusal(v, err.Error()), nil
	}
	if said := req.Answer.Decision; said != "" && !slices.Contains(decisions(rules), said) {
		return refusal(v, fmt.Sprintf("a person was asked and did not allow it: the answer %q was not offered, only %q were. Call again without it to be asked again", clipped(said), decisions(rules))), nil
	}
	switch req.Answer.Decision {
	case AlwaysAllow:
		p.remember(rules)
		fallthrough
	case AllowOnce:
		v.Action = guard.Allow
		v.Reason = "A person allowed it."
		return v, nil
	}
	return refusal(v, refusedBecause(req.Answer)), nil
}

// clipped returns the beginning of a text that a client sent, for a message.
func clipped(s string) string {
	const longest = 40
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}

func refusal(v guard.Verdict, because string) guard.Verdict {
	v.Action = guard.Deny
	v.Reason = strings.TrimSuffix(v.Reason, ".") + "; " + because + "."
	return v
}

func refusedBecause(a *Answer) string {
	said := "a person was asked and did not allow it"
	if a.Decision == DenyIt {
		said = "the person refused"
	}
	if reason := strings.Join(strings.Fields(a.Reason), " "); reason != "" {
		said += ": " + strings.TrimSuffix(reason, ".")
	}
	return said
}

// remember adds allow rules to the user's own settings for this workspace.
func (p *approver) remember(rules []string) {
	for _, rule := range rules {
		if err := settings.AppendAllow(p.policies.where, p.policies.cfg.Roots[0], rule); err != nil {
			p.log.Warn("a rule could not be remembered", "rule", rule, "error", err)
		}
	}
}

// questionText returns what a person must know to decide, cut to what fits a dialog. It says what was left out.
func questionText(tool string, v guard.Verdict, rules []string) string {
	const mostParts, longest = 8, 600
	var b strings.Builder
	fmt.Fprintf(&b, "%s asks to be allowed:\n", tool)
	shown, more := 0, 0
	for _, p := range v.Parts {
		if p.Action == guard.Allow {
			continue
		}
		if shown == mostParts {
			more++
			continue
		}
		what := p.What
		if r := []rune(what); len(r) > longest {
			what = fmt.Sprintf("%s… (%d more characters)", string(r[:longest]), len(r)-longest)
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(what, "\n", "\n  "))
		shown++
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n  … and %d more of which a person must be asked, not shown here\n", more)
	}
	fmt.Fprintf(&b, "\n%s (rule: %s", v.Reason, v.Rule)
	if v.Source != "" {
		fmt.Fprintf(&b, ", %s", v.Source)
	}
	b.WriteString(")")
	if len(rules) > 0 {
		fmt.Fprintf(&b, "\n\nAlways allowing it remembers: %s", strings.Join(rules, ", "))
	}
	return Sanitize(b.String())
}

// digest identifies a call: its scope, tool and arguments, and what was asked and offered.
func digest(scope string, req Request, v guard.Verdict, offered []string) []byte {
	var args any
	canonical := []byte(req.Args)
	if json.Unmarshal(req.Args, &args) == nil { // a client may change the order of the keys when it repeats the call
		if sorted, err := json.Marshal(args); err == nil {
			canonical = sorted
		}
	}
	h := sha256.New()
	for _, part := range append([]string{scope, req.Tool, string(canonical), v.Rule, v.Source}, offered...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	for _, p := range v.Parts {
		fmt.Fprintf(h, "%d:%s%d", len(p.What), p.What, p.Action)
	}
	return h.Sum(nil)
}
