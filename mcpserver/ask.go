package mcpserver

import (
	"bytes"
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"toolhost/builtin"
	"toolhost/guard"
	"toolhost/guard/settings"
	"toolhost/mcpserver/internal/statedir"
	"toolhost/mcpserver/visible"
)

// AskTime is how long a person has to answer.
const AskTime = 5 * time.Minute

// A Question asks a person whether a call may run.
type Question struct {
	// Message says what the call would do, and which rule asks.
	Message string
	// Always says that "always allow" is offered: the rules that would be remembered.
	Always []string
	// State binds the answer to the call. It is opaque, signed, and good once, for [AskTime].
	State string
	// Input is the whole input that the call would run with, as JSON.
	Input json.RawMessage
	// Dir is where the command would run; empty when there is none.
	Dir string
	// Verdict is why it is asked, part by part.
	Verdict guard.Verdict
}

// about notes what the question's call would do.
func (q *Question) about(call *builtin.Call, plan builtin.Plan) {
	q.Input, _ = call.Input() // what was bound from JSON encodes
	if c := plan.Intent.Command; c != nil {
		q.Dir = c.Dir.String()
	}
}

// The decisions of a person.
const (
	AllowOnce   = "allow once"
	AlwaysAllow = "always allow" // only where the question offers it
	DenyIt      = "deny"
)

// An Answer is what a person said to a [Question].
type Answer struct {
	State    string
	Decision string // one of the decisions; anything else, such as "", is a refusal
	Reason   string // of a refusal, for the agent
	By       string // who put the question to a person: [ByClient] or [ByConsole]
}

// Who puts questions to a person, as the audit log names them.
const (
	ByClient  = "client"
	ByConsole = "console"
)

// ask decides what becomes of a call that a rule wants asked. Without an answer it is put as a question, if
// the client can put it; otherwise it is refused. An answer counts for exactly the call it was given to.
func (h *Host) ask(a *Arrival, req Request, v guard.Verdict) (guard.Verdict, *Question) {
	if v.Action != guard.Ask {
		return v, nil
	}
	rules := v.AllowRules()
	if !a.scope.exact || !ownersOwn(a.principal) {
		rules = nil // several agents may share it: what one was allowed is not for the others
	}
	key := a.scope.key
	if a.session != "" {
		key.value = newHandle // the call will ask for a session again when it is repeated
	}
	call := h.questions.digest(key, req, v)
	if req.Answer == nil {
		if !req.CanAsk {
			return refusal(v, "a person must approve it, and nobody can be asked here"), nil
		}
		return v, &Question{Message: questionText(req.Tool, v, rules), Always: rules, State: h.questions.pose(a.principal, call), Verdict: v}
	}
	if err := h.questions.settle(req.Answer.State, call); err != nil {
		return refusal(v, err.Error()), nil
	}
	switch req.Answer.Decision {
	case AlwaysAllow:
		h.remember(rules)
		fallthrough
	case AllowOnce:
		v.Action = guard.Allow
		v.Reason = "A person allowed it."
		return v, nil
	}
	return refusal(v, refusedBecause(req.Answer)), nil
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

// remember keeps rules for the future, in the user's own settings for this workspace.
func (h *Host) remember(rules []string) {
	for _, rule := range rules {
		if err := settings.AppendAllow(h.where, h.cfg.Roots[0], rule); err != nil {
			h.log.Warn("a rule could not be remembered", "rule", rule, "error", err)
		}
	}
}

// questionText says what a person must know to decide, and no more than fits a dialog. What is left out is said.
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
	return visible.Text(b.String())
}

// maxQuestionsOpen is how many questions about the calls of one principal may be open; beyond it the oldest is given up.
const maxQuestionsOpen = 256

// questions signs what binds an answer to its call. The client carries it and is not trusted with it.
type questions struct {
	secret []byte

	mu    sync.Mutex
	open  map[string]*list.Element // nonce → the openQuestion that was not answered yet
	byAge *list.List               // the oldest first
	of    map[string]int           // principal → how many are open
}

// An openQuestion is one that was not answered yet.
type openQuestion struct {
	nonce, principal string
	end              time.Time
}

func newQuestions() *questions {
	q := &questions{secret: make([]byte, statedir.SecretSize), open: map[string]*list.Element{}, byAge: list.New(), of: map[string]int{}}
	_, _ = rand.Read(q.secret) // crypto/rand never fails; a restart ends every open question
	return q
}

// digest stands for a call: whose, in which scope, which tool with which arguments, and what was asked about it.
func (q *questions) digest(key scopeKey, req Request, v guard.Verdict) []byte {
	var args any
	canonical := []byte(req.Args)
	if json.Unmarshal(req.Args, &args) == nil { // a client may order the keys anew when it repeats the call
		if sorted, err := json.Marshal(args); err == nil {
			canonical = sorted
		}
	}
	h := sha256.New()
	for _, part := range []string{key.String(), req.Tool, string(canonical), v.Rule, v.Source} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	for _, p := range v.Parts {
		fmt.Fprintf(h, "%d:%s%d", len(p.What), p.What, p.Action)
	}
	return h.Sum(nil)
}

// nonceSize is the length of what makes each question its own, in bytes.
const nonceSize = 16

// pose opens a question about a call of a principal and returns its state: a nonce, the digest of the call, and a
// signature of both.
func (q *questions) pose(principal string, call []byte) string {
	now := time.Now()
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // crypto/rand never fails
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.byAge.Front(); e != nil && now.After(e.Value.(openQuestion).end); e = q.byAge.Front() {
		q.drop(e)
	}
	for e := q.byAge.Front(); e != nil && q.of[principal] >= maxQuestionsOpen; {
		next := e.Next()
		if e.Value.(openQuestion).principal == principal {
			q.drop(e)
		}
		e = next
	}
	q.open[string(nonce)] = q.byAge.PushBack(openQuestion{string(nonce), principal, now.Add(AskTime)})
	q.of[principal]++
	return base64.RawURLEncoding.EncodeToString(slices.Concat(nonce, call, q.sign(nonce, call)))
}

// drop closes a question. The caller holds the lock.
func (q *questions) drop(e *list.Element) {
	was := q.byAge.Remove(e).(openQuestion)
	delete(q.open, was.nonce)
	if q.of[was.principal]--; q.of[was.principal] == 0 {
		delete(q.of, was.principal)
	}
}

// errForged answers a state that is not one of this process, or was changed on its way.
var errForged = errors.New("the requestState is not one of this host, or of one that has been started anew since: send it back as it came, or call again without it to be asked again")

// parse takes a state apart whose signature is ours.
func (q *questions) parse(state string) (nonce, call []byte, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(raw) != nonceSize+2*sha256.Size || base64.RawURLEncoding.EncodeToString(raw) != state {
		return nil, nil, errForged
	}
	nonce, call, mac := raw[:nonceSize], raw[nonceSize:nonceSize+sha256.Size], raw[nonceSize+sha256.Size:]
	if !hmac.Equal(mac, q.sign(nonce, call)) {
		return nil, nil, errForged
	}
	return nonce, call, nil
}

// settle closes a question. The error says why its answer does not count.
func (q *questions) settle(state string, call []byte) error {
	nonce, asked, err := q.parse(state)
	if err != nil {
		return err
	}
	if !hmac.Equal(asked, call) {
		return errors.New("the answer was given to another call, or what the call would do has changed since")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.open[string(nonce)]
	if ok {
		q.drop(e)
	}
	if !ok || time.Now().After(e.Value.(openQuestion).end) {
		return fmt.Errorf("the answer came twice, later than %s, or after %d newer questions: call again without it to be asked again", AskTime, maxQuestionsOpen)
	}
	return nil
}

func (q *questions) sign(nonce, call []byte) []byte {
	mac := hmac.New(sha256.New, q.secret)
	mac.Write(bytes.Join([][]byte{[]byte("question"), nonce, call}, []byte{0}))
	return mac.Sum(nil)
}
