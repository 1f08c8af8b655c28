//go:build unix

package attack

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A threat is a class of attacks that must be held.
type threat struct {
	class string
	tests []string // that hold it, next to the rows of testdata/attacks
}

// declaredTests returns the names of the tests of this package, also those with the build tag slow.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	host.Must(t, err)
	names := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.SkipObjectResolution)
		host.Must(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// threats are all classes.
var threats = []threat{
	{class: "path prefix twins"},
	{class: "symlinks", tests: []string{"TestAttackRaces"}},
	{class: "swap between check and open", tests: []string{"TestAttackRaces", "TestAttackReplacedWhileRead", "TestAttackAppended"}},
	{class: "hard links", tests: []string{"TestAttackRaces"}},
	{class: "spelling"},
	{class: "special files"},
	{class: "planted files", tests: []string{"TestAttackPlanted", "TestAttackIgnoreBombs"}},
	{class: "hostile names"},
	{class: "broken settings"},
	{class: "shell reads by any program"},
	{class: "process escapes", tests: []string{"TestLandlock"}},
	{class: "grouping and substitution"},
	{class: "words that hold a name"},
	{class: "search parameters"},
	{class: "search bombs"},
	{class: "what a rule asks for"},
	{class: "what a plan leaves", tests: []string{"TestPlanCloses"}},
	{class: "chaining"},
	{class: "line continuation"},
	{class: "quotes and escapes"},
	{class: "binaries elsewhere"},
	{class: "version flags"},
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
	{class: "own rules", tests: []string{"TestAttackLeftBehind", "TestAttackControl", "TestAttackControlLate"}},
	{class: "files of the host", tests: []string{"TestAttackAuditLog", "TestAttackPlantedOwnFile"}},
	{class: "shipped by a repository", tests: []string{"TestAttackHostileRepository", "TestAttackGitConfiguration", "TestAttackGitNames", "TestAttackUndoGit", "TestAttackTryGit"}},
	{class: "sandbox opt-out"},
	{class: "sandbox silently off"},
	{class: "predictable temporary names"},
	{class: "background tasks"},
	{class: "protected paths that are absent"},
	{class: "late files"},
	{class: "every edit denied"},
	{class: "the words of a rule"},
	{class: "taken for harmless"},
	{class: "arguments", tests: []string{"TestAttackArguments"}},
	{class: "DNS rebinding", tests: []string{"TestAttackHTTP"}},
	{class: "loopback without a token", tests: []string{"TestAttackHTTP"}},
	{class: "what a script calls"},
	{class: "only reading"},
	{class: "what a rule allows"},
	{class: "links to questions", tests: []string{"TestAttackAwayLink"}},
	{class: "the network", tests: []string{"TestAttackNetwork"}},
	{class: "caches of other programs", tests: []string{"TestAttackCaches", "TestAttackCachesApart", "TestAttackCachesRemoved"}},
	{class: "plan mode of another caller", tests: []string{"TestAttackPlanCallers"}},
	{class: "the user's terminal", tests: []string{"TestAttackTerminal"}},
	{class: "another user on loopback", tests: []string{"TestAttackPlayedModel"}},
	{class: "TLS", tests: []string{"TestAttackTLS", "TestAttackServerTLS"}},
	{class: "a proxy in the environment", tests: []string{"TestAttackProxies"}},
	{class: "floods of streams", tests: []string{"TestAttackFloods"}},
	{class: "masked credentials", tests: []string{"TestAttackCredentials", "TestAttackCredentialsRun", "TestAttackCredentialsServer", "TestAttackCredentialsRemote", "TestAttackCredentialsNames", "TestAttackCredentialsSSH", "TestAttackCredentialsEverywhere"}},
	{class: "another workspace of one server", tests: []string{"TestAttackWorkspaces", "TestVillage"}},
	{class: "benign"},
}
