package rules

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// A paramRule is a rule on an argument of a call.
type paramRule struct {
	rule  *Rule
	name  string // folded
	value string
}

func newParamRule(r *Rule, name, value string) paramRule { return paramRule{r, foldedKey(name), value} }

// foldedKey returns the same text for keys that differ in case only, because not all servers distinguish them.
func foldedKey(key string) string { return strings.ToLower(strings.ToUpper(key)) }

// Param returns the rule on an argument of the call. The argument may be at any depth.
func (l *List) Param(tool string, args map[string]any) *Rule {
	for _, key := range []string{tool, "*"} {
		for _, p := range l.params[key] {
			if p.in(args, false) {
				return p.rule
			}
		}
	}
	for _, p := range l.foreignParams {
		if l.covers(p.rule.tool, tool) && p.in(args, false) {
			return p.rule
		}
	}
	return nil
}

// in reports whether the rule matches in a value. below says that the value belongs to the parameter.
func (p paramRule) in(v any, below bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			found := !below && foldedKey(key) == p.name
			if found && strings.Trim(p.value, "*") == "" || p.in(value, below || found) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return p.in(one, below) })
	}
	return below && slices.ContainsFunc(scalar(v), func(text string) bool { return pathname.Text(p.value, text) })
}

// scalar returns an argument in the forms in which rules may write it. A number has several.
func scalar(v any) []string {
	switch v := v.(type) {
	case nil:
		return []string{"null"}
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case int:
		return []string{strconv.Itoa(v)}
	case int64:
		return []string{strconv.FormatInt(v, 10)}
	case json.Number:
		texts := []string{v.String()}
		if n, err := v.Float64(); err == nil {
			texts = append(texts, strconv.FormatFloat(n, 'f', -1, 64))
		}
		return texts
	}
	return nil
}
