package guard

import (
	"strconv"
	"strings"
)

// An Action is what happens to a call. The zero Action refuses.
type Action uint8

// The actions, strictest first.
const (
	Deny  Action = iota // refused
	Ask                 // a person must agree; refused if no one can be asked
	Allow               // runs
)

// String returns "deny", "ask" or "allow".
func (a Action) String() string {
	switch a {
	case Deny:
		return "deny"
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "Action(" + strconv.Itoa(int(a)) + ")"
}

// MarshalText writes what [Action.String] returns.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// The built-in rules, as [Verdict.Rule] names them.
const (
	// RuleSettings refuses every call: a settings file does not parse, or the host cannot serve.
	RuleSettings     = "settings"
	RuleBoundary     = "boundary"       // outside the roots and additional directories
	RuleProtected    = "protected path" // writing what other programs run or obey
	ruleCritical     = "critical path"  // removing the root, home, a workspace
	ruleSettingsFile = "settings file"  // writing the guard's own rules
	ruleState        = "host state"     // the host's own directory
	ruleSecret       = "home secret"    // keys and credentials in the home directory, or masked
	ruleHardLink     = "hard link"      // a file with names elsewhere
	ruleContainment  = "containment"    // rules that only a sandbox could enforce
	ruleUnsandboxed  = "sandbox opt-out"
	ruleUndecidable  = "undecidable command"
	ruleDiscard      = "discarded work" // leaving a worktree and losing changes in it
	ruleReadOnly     = "read-only command"
	ruleMode         = "mode" // followed by the mode's name
)

// A Verdict is the guard's answer to one [Intent]. The zero Verdict refuses.
type Verdict struct {
	Action Action `json:"action"`
	// Rule is the rule that decided, as written in the settings ("Bash(rm:*)"),
	// or a built-in rule such as [RuleBoundary].
	Rule string `json:"rule"`
	// Source is the position of the rule: "file:line", "--deny", or "built in".
	Source string `json:"source"`
	// Final marks an Ask that no hook may answer: it comes from an ask rule or
	// guards what no rule may approve in advance.
	Final bool `json:"firm,omitempty"`
	// Reason is one sentence for the agent. It never names a denied file that
	// the caller did not name itself.
	Reason string `json:"reason"`
	// Remedy says what the agent is to do next.
	Remedy string `json:"remedy,omitempty"`
	// Person says how a person allows it for good: a command, or the place of the rule. Agents do not get it.
	Person string `json:"person,omitempty"`
	// Parts lists what was found, one entry for each path and simple command.
	Parts []Part `json:"parts,omitempty"`
	// Held is "when programs start" if the text does not name every program of the command.
	Held string `json:"held,omitempty"`
}

// A Part is one thing an [Intent] would do and the rule that decided it.
type Part struct {
	// What is the path or command, after its kind: "read /ws/a", "run rm -rf x".
	What   string `json:"what"`
	Action Action `json:"action"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy,omitempty"`
	Final  bool   `json:"firm,omitempty"`

	allow         string   // the narrowest rule that allows it, see [Subject]
	person        string   // see [Verdict.Person]
	personCommand []string // makes person, with a root
}

// builtIn is the Source of verdicts that no settings file gave.
const builtIn = "built in"

// Error returns the verdict as one line: the reason, the rule and its source,
// and what to do next.
func (v Verdict) Error() string {
	var b strings.Builder
	if v.Reason == "" {
		b.WriteString("Refused: the call was never judged.")
	} else {
		b.WriteString(v.Reason)
	}
	if v.Rule != "" {
		b.WriteString(" (rule: " + v.Rule)
		if v.Source != "" && v.Source != builtIn {
			b.WriteString(", from " + v.Source)
		}
		b.WriteString(")")
	}
	if v.Remedy != "" {
		b.WriteString(" " + v.Remedy)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
