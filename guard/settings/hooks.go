package settings

import (
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// The hook events that concern a tool call.
const (
	PreToolUse         = "PreToolUse"
	PostToolUse        = "PostToolUse"
	PostToolUseFailure = "PostToolUseFailure"
	PermissionRequest  = "PermissionRequest"
	PermissionDenied   = "PermissionDenied"
)

// Classifier is the setting of the hook that answers for a person in [ModeAuto], and the event that this hook
// receives. It has one group with one hook in [Settings.Hooks], from user or managed settings.
const Classifier = "permissions.classifier"

// classifierTimeout is the longest time that a classifier may take.
const classifierTimeout = 5 * time.Second

// classifier reads the setting of that name.
func (p *parser) classifier(v hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		p.wrongType(Classifier, v, "a hook: an object {type, command} or {type, url}")
		return
	}
	if h, ok := p.hook(v, object); ok {
		h.Timeout, h.Async = min(h.Timeout, classifierTimeout), false
		if h.Type == "command" && !h.Uncontained {
			p.warn(v, `%s runs contained, so that it cannot allow anything: add "contained": false, or let a person answer`,
				Classifier)
		}
		p.hooks[Classifier] = []HookMatcher{{Hooks: []Hook{h}, Source: p.entry(v, Classifier)}}
	}
}

func hookEvents() []string {
	return []string{PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest, PermissionDenied}
}

// otherEvents are events of Claude Code that happen in the client, where its
// own hooks see them.
const otherEvents = `UserPromptSubmit UserPromptExpansion Notification Stop StopFailure SubagentStart SubagentStop
	PreCompact PostCompact SessionStart SessionEnd Setup TaskCreated TaskCompleted TeammateIdle
	Elicitation ElicitationResult ConfigChange InstructionsLoaded CwdChanged FileChanged
	WorktreeCreate WorktreeRemove PostToolBatch`

// otherHookFields are fields of a hook that Claude Code knows and that change
// nothing here.
const otherHookFields = `asyncRewake statusMessage once description`

// maxHookTimeout limits the timeout that a file may set: a hook delays the call.
const maxHookTimeout = time.Hour

func (p *parser) hookEvents(v hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		p.wrongType("hooks", v, "an object of events")
		return
	}
	known, other := words(strings.Join(hookEvents(), " ")), words(otherEvents)
	for _, m := range object.Members {
		switch name := literal(m.Name); {
		case p.words.byName["hooks."+name] != nil:
			p.member("hooks", "hooks."+name, m)
		case other[name] || isNull(m.Value):
		case !known[name]:
			p.warn(m.Name, "unknown hook event %q%s", name, suggest(name, append(hookEvents(), "onFailure")))
		default:
			p.hookGroups(name, m.Value)
		}
	}
}

func (p *parser) hookGroups(event string, v hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		p.wrongType("hooks."+event, v, "an array of {matcher, hooks}")
		return
	}
	for _, el := range array.Elements {
		object, ok := el.Value.(*hujson.Object)
		if !ok {
			p.wrongType("an entry of hooks."+event, el, "an object {matcher, hooks}")
			continue
		}
		group := HookMatcher{}
		for _, m := range object.Members {
			switch name := literal(m.Name); {
			case name == "matcher" && isString(m.Value):
				group.Matcher = literal(m.Value)
			case name == "matcher":
				// Hooks with an unreadable matcher apply to every tool.
				p.warn(m.Value, "the matcher is %s; a string is expected. The hooks apply to every tool",
					describe(m.Value))
			case name == "hooks":
				group.Hooks = append(group.Hooks, p.hooksOf(event, m.Value)...)
			default:
				p.warn(m.Name, "unknown key %q in hooks.%s%s", name, event, suggest(name, []string{"matcher", "hooks"}))
			}
		}
		group.Source = p.entry(el, group.Matcher)
		if len(group.Hooks) > 0 {
			p.hooks[event] = append(p.hooks[event], group)
		}
	}
}

func (p *parser) hooksOf(event string, v hujson.Value) []Hook {
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		p.wrongType("hooks of "+event, v, "an array")
		return nil
	}
	var hooks []Hook
	for _, el := range array.Elements {
		object, ok := el.Value.(*hujson.Object)
		if !ok {
			p.wrongType("a hook of "+event, el, "an object {type, command}")
			continue
		}
		if h, ok := p.hook(el, object); ok {
			hooks = append(hooks, h)
		}
	}
	return hooks
}

// hook reads one hook. False means a kind that only a model client can run.
func (p *parser) hook(at hujson.Value, object *hujson.Object) (Hook, bool) {
	h := Hook{Timeout: DefaultHookTimeout}
	for _, m := range object.Members {
		p.hookField(&h, m)
	}
	switch {
	case h.Type == "prompt" || h.Type == "agent" || h.Type == "mcp_tool":
		p.warn(at, "toolhost does not run hooks of type %q", h.Type)
		return h, false
	case h.Type == "command" && h.Command == "":
		p.warn(at, "a hook of type \"command\" names no command; it cannot start")
	case h.Type == "http" && h.URL == "":
		p.warn(at, "a hook of type \"http\" names no url; it cannot start")
	case h.Type != "command" && h.Type != "http":
		p.warn(at, "the type of a hook is %q; \"command\" or \"http\" is expected. It cannot start", h.Type)
	}
	return h, true
}

func (p *parser) hookField(h *Hook, m hujson.ObjectMember) {
	fields := map[string]*string{"type": &h.Type, "command": &h.Command, "shell": &h.Shell, "url": &h.URL, "if": &h.If}
	name := literal(m.Name)
	switch field := fields[name]; {
	case field != nil && isString(m.Value):
		*field = literal(m.Value)
	case field != nil:
		p.wrongType("the "+name+" of a hook", m.Value, "a string")
	case name == "timeout":
		h.Timeout = p.hookTimeout(m.Value)
	case name == "headers":
		h.Headers = p.hookHeaders(m.Value)
	case name == "args":
		h.Args = p.hookStrings("args", m.Value)
	case name == "allowedEnvVars":
		h.AllowedEnvVars = p.hookStrings("allowedEnvVars", m.Value)
	case name == "async":
		h.Async = p.hookSwitch(name, m.Value) == 't'
	case name == "contained":
		h.Uncontained = p.hookSwitch(name, m.Value) == 'f'
	case words(otherHookFields)[name] || name == "prompt" || name == "model":
	default:
		p.warn(m.Name, "unknown key %q of a hook%s", name, suggest(name, hookFields()))
	}
}

// hookFields are the fields of a hook that mean something here.
func hookFields() []string {
	return []string{"type", "command", "args", "shell", "url", "headers", "allowedEnvVars", "if", "timeout", "async",
		"contained"}
}

// hookSwitch reads true ('t') or false ('f') of a hook.
func (p *parser) hookSwitch(name string, v hujson.Value) hujson.Kind {
	kind := v.Value.Kind()
	if kind != 't' && kind != 'f' {
		p.wrongType(name+" of a hook", v, "true or false")
	}
	return kind
}

// hookStrings reads a list of strings. It never returns nil, so that a wrong list differs from a missing one.
func (p *parser) hookStrings(name string, v hujson.Value) []string {
	list := []string{}
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		p.wrongType(name+" of a hook", v, "an array of strings")
		return list
	}
	for _, el := range array.Elements {
		if isString(el) {
			list = append(list, literal(el))
		} else {
			p.wrongType("an entry in "+name+" of a hook", el, "a string")
		}
	}
	return list
}

func (p *parser) hookTimeout(v hujson.Value) time.Duration {
	l, _ := v.Value.(hujson.Literal)
	if seconds := l.Float(); v.Value.Kind() == '0' && seconds > 0 {
		return time.Duration(min(seconds, maxHookTimeout.Seconds()) * float64(time.Second))
	}
	p.wrongType("the timeout of a hook", v, "a number of seconds above 0")
	return DefaultHookTimeout
}

func (p *parser) hookHeaders(v hujson.Value) map[string]string {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		p.wrongType("the headers of a hook", v, "an object of strings")
		return nil
	}
	headers := make(map[string]string, len(object.Members))
	for _, m := range object.Members {
		if isString(m.Value) {
			headers[literal(m.Name)] = literal(m.Value)
		} else {
			p.wrongType("header "+literal(m.Name)+" of a hook", m.Value, "a string")
		}
	}
	return headers
}
