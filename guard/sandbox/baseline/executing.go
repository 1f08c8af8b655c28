package baseline

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/gitrepo"
)

// executingText lists the settings that [executes] reports.
//
//go:embed executing.txt
var executingText string

// rule is a line of executingText.
type rule struct {
	parts []string // the pattern, cut at its asterisks
	when  func(value string) bool
	why   string
}

// conditions are the words for when a rule applies.
var conditions = map[string]func(value string) bool{
	"always":  func(string) bool { return true },
	"command": func(value string) bool { return !gitrepo.IsBool(value) },
	"false": func(value string) bool {
		return slices.Contains([]string{"false", "no", "off", "0", ""}, strings.ToLower(value))
	},
	"bang": func(value string) bool { return strings.HasPrefix(value, "!") },
	"dash": func(value string) bool { return strings.HasPrefix(value, "-") },
}

// effects are the words for what a setting does.
var effects = map[string]string{
	"runs":     "git or one of its tools can execute a command because of it",
	"includes": "it reads settings from another file, which can execute commands",
	"drives":   "it belongs to a driver, and git fails without the commands of the driver, which are taken out",
	"connects": "it leads connections of git elsewhere, or weakens them",
}

// rules are the rules by the first section of their pattern, so that only a few are tried for a setting.
var rules = func() map[string][]rule {
	all := make(map[string][]rule)
	for line := range strings.Lines(executingText) {
		fields := strings.Fields(line)
		if len(fields) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		section, _, _ := strings.Cut(fields[0], ".")
		all[section] = append(all[section], rule{strings.Split(fields[0], "*"), conditions[fields[1]], effects[fields[2]]})
	}
	return all
}()

// matches reports whether a pattern, cut at its asterisks, is that of a key.
func matches(parts []string, key string) bool {
	key, ok := strings.CutPrefix(key, parts[0])
	if !ok || len(parts) == 1 {
		return ok && key == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, key, ok = strings.Cut(key, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(key, parts[last])
}

// executes returns the reason why a setting can make a program run or lead git elsewhere, or "".
func executes(s gitrepo.Setting) string {
	value := strings.TrimSpace(s.Value)
	section, _, _ := strings.Cut(s.Key, ".")
	for _, r := range rules[section] {
		if matches(r.parts, s.Key) && r.when(value) {
			return r.why
		}
	}
	if strings.Contains(strings.ToLower(s.Key+value), "ext::") {
		return "the address executes a command"
	}
	return ""
}
