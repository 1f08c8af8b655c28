package mcpserver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
)

// An Answer is a person's answer to a [Question].
type Answer struct {
	State    string
	Decision string // one of the decisions that the question offers; any other value, such as "", refuses
	Rule     string // a narrower rule to remember in place of the offered rules; "": the offered rules
	Reason   string // the reason of a refusal, for the agent
	Form     string // the result of an elicitation as JSON, for a question with a form
	By       string // the channel that asked the person: [ByClient] or [byConsole]
	late     bool   // nobody answered in time
}

// The values of [Answer.By], as they appear in the audit log.
const (
	ByClient  = "client"
	byConsole = "console"
	byHook    = "hook"
)

// An approver issues questions to people and checks their answers.
type approver struct {
	questions   *approvals.Store
	always      alwaysAllowed
	suspensions questioned[*suspended]
	waiting     waitingRecords
	pages       questioned[*openPage]
	asker       Asker // nil: the operator cannot be asked
	policies    *policies
	log         *slog.Logger
	// uncontained is set once a command has run outside of any containment without a person's approval.
	uncontained atomic.Bool
}

// A questioned holds a value for each open question, by the state of the question.
type questioned[T any] struct {
	mu  sync.Mutex
	all map[string]T
}

func (k *questioned[T]) put(state string, v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]T{}
	}
	k.all[state] = v
	time.AfterFunc(approvals.Kept, func() { k.take(state) })
}

// get returns the value of a question, or the zero value.
func (k *questioned[T]) get(state string) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[state]
}

// take is get, and removes the value.
func (k *questioned[T]) take(state string) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.all[state]
	delete(k.all, state)
	return v
}

// decide returns the final verdict on a call that requires approval. Without an answer it returns a question if
// the client can ask it, and a refusal otherwise. An answer counts only for the call that it was given for.
func (p *approver) decide(c *execCall, plan builtin.Plan, v guard.Verdict, rec *audit.Record) (guard.Verdict,
	*Question) {
	if v.Action != guard.Ask {
		return v, nil
	}
	a, req := c.admission, c.req
	offered := p.offer(a, v)
	offered.by = c.host.children.label(a.principal)
	rules := offered.rules
	scripts := c.env.Policy.Scripts(plan.Intent, v)
	call := digest(a.scope.Asked(a.session != ""), req, v, rules, scripts...)
	if req.Answer == nil {
		if !req.CanAsk {
			return refusal(v, "a person must approve it, and this client cannot ask one"), nil
		}
		d := plan.Intent.Describe(v)
		d.Scripts = scripts
		q := p.newQuestion(a.principal, req.Tool, c.call, d, v, offered)
		q.State, q.digest = p.questions.Issue(a.principal, call), call
		rec.Question = q.ID
		rec.Did(audit.PhaseAsked, req.askedBy(), "")
		return v, q
	}
	p.waiting.resume(rec, req.Answer.State, call)
	if err := p.questions.Redeem(req.Answer.State, call); err != nil {
		return refusal(v, err.Error()), nil
	}
	if said := req.Answer.Decision; said != "" && !slices.Contains(decisions(rules), said) {
		return refusal(v, fmt.Sprintf("a person was asked and did not allow it: the answer %q was not offered, only %q "+
			"were. Repeat the call without the answer to ask again", clipped(said), decisions(rules))), nil
	}
	remembered, err := guard.NarrowRules(rules, req.Answer.Rule)
	if err != nil {
		return refusal(v, "a person was asked, and the answer does not count: "+err.Error()), nil
	}
	note := ""
	switch req.Answer.Decision {
	case AlwaysAllow:
		p.remember(settings.ListAllow, remembered...)
		note = "always: " + strings.Join(remembered, ", ")
		fallthrough
	case AllowOnce:
		v.Action = guard.Allow
		v.Reason = "A person allowed it."
		if req.Answer.By == byClassifier {
			v.Reason = "The classifier allowed it."
		}
		rec.Did(audit.PhaseApproved, req.Answer.By, note)
		return v, nil
	}
	rec.Did(audit.PhaseRefused, req.Answer.By, req.Answer.Reason)
	return refusal(v, refusedBecause(req.Answer)), nil
}

// offer returns the rules that "always allow" would remember.
func (p *approver) offer(a *Admission, v guard.Verdict) offer {
	switch {
	case !isOperator(a.principal):
		return offer{none: "the caller is not the owner of this host"}
	case !a.scope.Personal:
		return offer{none: notPersonal}
	}
	rules, reason := v.AllowRules()
	return offer{rules: rules, none: reason}
}

// notPersonal explains why nothing is remembered for a call that does not identify its conversation.
const notPersonal = "several people may share this conversation, because the client names none"

// clipped returns a text from a client, for use in a message.
func clipped(s string) string {
	const longest = 40
	return guard.Shorten(s, longest)
}

func refusal(v guard.Verdict, because string) guard.Verdict {
	v.Action = guard.Deny
	v.Reason = strings.TrimSuffix(v.Reason, ".") + "; " + because + "."
	return v
}

// nobodyAnswered is the reason of a refusal whose question was put to a person for [approvals.Lifetime].
var nobodyAnswered = fmt.Sprintf("nobody answered within %d minutes", approvals.Lifetime/time.Minute)

func refusedBecause(a *Answer) string {
	said := "a person was asked and did not allow it"
	switch {
	case a.Decision == DenyIt:
		said = "the person refused"
	case a.late:
		said = nobodyAnswered
	}
	if reason := strings.Join(strings.Fields(a.Reason), " "); reason != "" {
		said += ": " + strings.TrimSuffix(reason, ".")
	}
	return said
}

// remember adds entries to a list of the user's own settings for this workspace, and reports whether they are there.
func (p *approver) remember(list string, entries ...string) bool {
	kept := true
	for _, entry := range entries {
		if err := settings.Append(p.policies.where, p.policies.cfg.Roots[0], list, entry); err != nil {
			p.log.Warn("cannot remember a rule", "rule", entry, "error", err)
			kept = false
		}
	}
	return kept
}

// digest returns a hash that identifies a call by its scope, tool and arguments, the verdict, the offered
// rules and the scripts that it runs.
func digest(scope string, req Request, v guard.Verdict, offered []string, scripts ...guard.Script) []byte {
	var args any
	canonical := []byte(req.Args)
	if json.Unmarshal(req.Args, &args) == nil { // sort keys: a client may reorder them when it repeats the call
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
	for _, s := range scripts {
		fmt.Fprintf(h, "%d:%s%s", len(s.File), s.File, s.Digest)
	}
	return h.Sum(nil)
}
