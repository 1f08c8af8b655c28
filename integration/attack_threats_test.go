//go:build unix

package integration

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// A threat is a class of attacks that must be held.
type threat struct {
	class string
	tests []func(*testing.T) // next to the rows of testdata/attacks
}

func (c threat) names() []string {
	var all []string
	for _, f := range c.tests {
		name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
		all = append(all, name[strings.LastIndexByte(name, '.')+1:])
	}
	return all
}

// threats are all classes.
var threats = []threat{
	{class: "path prefix twins"},
	{class: "symlinks", tests: []func(*testing.T){TestAttackRaces}},
	{class: "swap between check and open", tests: []func(*testing.T){TestAttackRaces, TestAttackReplacedWhileRead, TestAttackAppended}},
	{class: "hard links", tests: []func(*testing.T){TestAttackRaces}},
	{class: "spelling"},
	{class: "special files"},
	{class: "planted files", tests: []func(*testing.T){TestAttackPlanted, TestAttackIgnoreBombs}},
	{class: "hostile names"},
	{class: "broken settings"},
	{class: "shell reads by any program"},
	{class: "process escapes", tests: containedOtherwise},
	{class: "grouping and substitution"},
	{class: "words that hold a name"},
	{class: "search parameters"},
	{class: "search bombs"},
	{class: "what a rule asks for"},
	{class: "chaining"},
	{class: "line continuation"},
	{class: "quotes and escapes"},
	{class: "binaries elsewhere"},
	{class: "wrappers"},
	{class: "env prefixes"},
	{class: "flag order"},
	{class: "eval"},
	{class: "poisoned names"},
	{class: "read otherwise by bash"},
	{class: "long commands"},
	{class: "options that execute"},
	{class: "redirection"},
	{class: "cd into the rules"},
	{class: "own rules", tests: []func(*testing.T){TestAttackLeftBehind, TestAttackControl, TestAttackControlLate}},
	{class: "files of the host", tests: []func(*testing.T){TestAttackAuditLog, TestAttackPlantedOwnFile}},
	{class: "shipped by a repository", tests: []func(*testing.T){TestAttackHostileRepository, TestAttackGitConfiguration}},
	{class: "sandbox opt-out"},
	{class: "sandbox silently off"},
	{class: "predictable temporary names"},
	{class: "background tasks"},
	{class: "protected paths that are absent"},
	{class: "late files"},
	{class: "every edit denied"},
	{class: "the words of a rule"},
	{class: "taken for harmless"},
	{class: "arguments", tests: []func(*testing.T){TestAttackArguments}},
	{class: "DNS rebinding", tests: []func(*testing.T){TestAttackHTTP}},
	{class: "loopback without a token", tests: []func(*testing.T){TestAttackHTTP}},
	{class: "what a script calls"},
	{class: "only reading"},
	{class: "what a rule allows"},
	{class: "benign"},
}
