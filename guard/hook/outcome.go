package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/guard/settings"
)

// outcome is the result of one hook.
type outcome struct {
	chosen
	response
	err error // the hook failed, and there is no answer
}

// failed records a failure and says it.
func (r *Runner) failed(event string, o outcome) string {
	r.failing(o.Hook, o.err)
	r.log.Warn("a hook failed", "event", event, "hook", o.label(), "error", o.err)
	return fmt.Sprintf("The %s hook %s failed: %v", event, o.label(), o.err)
}

// told returns the texts of a hook besides its decision.
func (r *Runner) told(event string, o outcome) []string {
	if o.message != "" {
		r.log.Info("a hook says", "event", event, "hook", o.label(), "message", clip(o.message, maxText))
	}
	if o.context == "" {
		return nil
	}
	return []string{clip(o.context, maxText)}
}

// why returns the reason of an answer, or a reason that names the hook.
func (o outcome) why(event string) string {
	if o.action == none || o.action == Allow {
		return ""
	}
	if reason := clip(o.reason, maxText); reason != "" {
		return reason
	}
	verb := "refuses this"
	if o.action == Ask {
		verb = "wants a person to be asked"
	}
	return fmt.Sprintf("The %s hook %s %s and gives no reason.", event, o.label(), verb)
}

// take applies an action if it is stricter, and adds the reason if it is as strict.
func (d *Decision) take(action action, reason, from string) {
	switch {
	case action > d.Action:
		d.Action, d.Reason, d.From = action, reason, from
	case action == d.Action && reason != "":
		d.Reason += "\n" + reason
	}
}

// decide combines the outcomes of the hooks of an event before the call. If the call was cancelled in the meantime,
// some answers are missing, and the call is refused.
func (r *Runner) decide(ctx context.Context, e event, outcomes []outcome) Decision {
	if len(outcomes) > 0 && ctx.Err() != nil {
		return Decision{Action: Deny, Reason: "The call was cancelled while its hooks ran."}
	}
	var d Decision
	var rewriters []outcome
	for _, o := range outcomes {
		switch {
		case o.err == nil:
			d.take(o.action, o.why(e.Name), o.from)
			d.Context = append(d.Context, r.told(e.Name, o)...)
			if o.input != nil {
				rewriters = append(rewriters, o)
			}
			if o.void {
				d.Void = o.from
			}
		case e.Name == settings.PreToolUse && o.refuses() != "":
			d.take(Deny, r.failed(e.Name, o)+"\nThe call was refused, because "+o.refuses(), o.from)
		default:
			d.Context = append(d.Context, r.failed(e.Name, o))
		}
	}
	input, conflict := rewritten(e.Input, rewriters)
	if conflict != "" {
		d.take(Deny, conflict, "")
	}
	if d.Action != Deny {
		d.UpdatedInput = input
	}
	if d.From == "" && d.UpdatedInput != nil {
		d.From = rewriters[0].from
	}
	return d
}

// refuses returns why the failure of a hook refuses the call, "" if it does not.
func (o outcome) refuses() string {
	switch {
	case errors.As(o.err, new(hostError)):
		return "commands may have caused this failure."
	case errors.As(o.err, new(misread)):
		return "the answer seems to refuse it: tell the user to correct the hook."
	case o.Strict:
		return `hooks.onFailure is "` + settings.OnFailureRefuse + `" for this hook: tell the user to correct it.`
	}
	return ""
}

// rewritten returns the input that hooks put in place of was, or nil. A hook that leaves the input unchanged does not
// count. Two different inputs are a conflict.
func rewritten(was json.RawMessage, by []outcome) (input json.RawMessage, conflict string) {
	if len(by) == 0 {
		return nil, ""
	}
	if before, err := canonical(was); err == nil {
		by = slices.DeleteFunc(by, func(o outcome) bool { return bytes.Equal(o.input, before) })
	}
	for _, o := range by {
		if input != nil && !bytes.Equal(o.input, input) {
			return nil, fmt.Sprintf("Two hooks rewrote the input in different ways, %s and %s: let only one of them do so.",
				by[0].label(), o.label())
		}
		input = o.input
	}
	return input, ""
}

// review combines the outcomes of the hooks of an event after the call.
func (r *Runner) review(e event, outcomes []outcome) After {
	var blocked Decision
	var after After
	var replacers []outcome
	for _, o := range outcomes {
		if o.err != nil {
			after.Context = append(after.Context, r.failed(e.Name, o))
			continue
		}
		after.Context = append(after.Context, r.told(e.Name, o)...)
		if o.action == Deny {
			blocked.take(Deny, o.why(e.Name), o.from)
		}
		if o.output != nil {
			replacers = append(replacers, o)
		}
	}
	after.Block, after.Reason, after.From = blocked.Action == Deny, blocked.Reason, blocked.From
	if len(replacers) == 0 {
		return after
	}
	after.Output = replaced(replacers)
	if after.From == "" {
		after.From = replacers[0].from
	}
	return after
}

// replaced returns the response that hooks put in place of the tool's. If they differ, it shows
// none of them, nor the tool's: one hook may have removed what another kept.
func replaced(by []outcome) json.RawMessage {
	for _, o := range by {
		if !bytes.Equal(o.output, by[0].output) {
			withheld, _ := json.Marshal(fmt.Sprintf("[The response is withheld: two hooks replaced it in different ways, %s "+
				"and %s. Let only one of them do so.]",
				by[0].label(), o.label())) // a string can always be encoded
			return withheld
		}
	}
	return by[0].output
}
