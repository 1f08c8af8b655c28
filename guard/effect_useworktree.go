package guard

import "github.com/toolhost/toolhost/guard/settings"

// UseWorktree moves the caller's conversation into a worktree, or out of it.
type UseWorktree struct {
	Branch  string
	Leaving bool
	Discard string // what is lost by leaving; "": nothing
}

// Judge implements [Effect]. Changes in a worktree are never discarded without a person's approval.
func (u UseWorktree) Judge(j Judgment) {
	p := Part{What: u.summary(), Action: Allow, Source: builtIn,
		Reason: "A worktree is a copy, and what was changed in one is kept on its branch."}
	switch {
	case j.judge.data.mode == settings.ModePlan:
		p = j.judge.planPart(p.What)
	case u.Discard != "":
		p.Action, p.Rule, p.Final = Ask, ruleDiscard, true
		p.Reason, p.Remedy = "The worktree holds work that is on no other branch: "+u.Discard+
			".", "Leave with keep: true, which commits the work and keeps its branch."
	}
	j.judge.add(p)
}

// Permission implements [Effect].
func (UseWorktree) Permission() Permission { return ToWrite }

// Record implements [Effect].
func (u UseWorktree) Record() (field, value string) { return "worktree", u.summary() }

func (u UseWorktree) summary() string {
	switch {
	case u.Discard != "":
		return "discard the worktree " + u.Branch
	case u.Leaving:
		return "leave the worktree " + u.Branch
	}
	return "enter the worktree " + u.Branch
}

func (u UseWorktree) describe() Description {
	return Description{Text: u.Discard, Items: []Item{{What: u.summary(), danger: changes}}}
}
