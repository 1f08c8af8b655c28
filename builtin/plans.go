package builtin

import (
	"errors"
	"sync"

	"github.com/toolhost/toolhost/guard/settings"
)

// plans are the sandboxes of plans. The changes of commands in them are dropped when the plan ends.
type plans struct {
	mu   sync.Mutex
	open map[planScope]planSandbox
}

// A planScope is a conversation that is, or was, in plan mode.
type planScope struct{ principal, scope string }

// A planSandbox identifies the sandbox of a plan by its key. plan is [Env.Plan], or "" for the mode of the settings.
type planSandbox struct{ plan, key string }

// planned is the [task.Spec].Data of a command in the sandbox of a plan: the key of that sandbox.
type planned string

// errPlanEnded ends the tasks of a plan.
var errPlanEnded = errors.New("the plan in which it ran has ended, and what it changed was dropped")

// enter records the sandbox of a command in plan mode.
func (p *plans) enter(env *Env) {
	if !env.Policy.Commands().Discard() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[planScope]planSandbox{}
	}
	p.open[planScope{env.Principal, env.Scope}] = planSandbox{env.Plan, env.sandboxKey()}
}

// DropEnded drops the sandbox of a plan that has ended since the last call of the scope.
func (b *Runtime) DropEnded(env *Env) {
	scope := planScope{env.Principal, env.Scope}
	b.plans.mu.Lock()
	s, open := b.plans.open[scope]
	b.plans.mu.Unlock()
	if open && (s.plan != env.Plan || s.plan == "" && env.Policy.Mode() != settings.ModePlan) {
		b.endPlan(scope)
	}
}

// endPlan drops the sandbox of a plan, with the tasks in it.
func (b *Runtime) endPlan(scope planScope) {
	b.plans.mu.Lock()
	s, open := b.plans.open[scope]
	delete(b.plans.open, scope)
	b.plans.mu.Unlock()
	if !open {
		return
	}
	for _, t := range b.tasks.Running(scope.principal) {
		if of, _ := t.Data.(planned); string(of) == s.key {
			t.Cancel(errPlanEnded)
			<-t.Done()
		}
	}
	b.sandboxes.Drop(s.key)
}
