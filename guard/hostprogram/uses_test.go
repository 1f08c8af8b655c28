package hostprogram

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// starts are the ways to start or find a program, by package.
var starts = map[string][]string{
	"os/exec":                  {"Command", "CommandContext", "LookPath", "Cmd"},
	"os":                       {"StartProcess"},
	"syscall":                  {"Exec", "ForkExec", "StartProcess"},
	"golang.org/x/sys/unix":    {"Exec"},
	"golang.org/x/sys/execabs": {"Command", "CommandContext", "LookPath"},
}

// resolved are the files that start a program whose path is known otherwise, with the reason.
var resolved = map[string]string{
	"builtin/cell.go":                                     "starts nothing: merges an environment",
	"builtin/internal/document/pdf.go":                    "this program",
	"builtin/internal/shell/environ.go":                   "looks at one absolute path",
	"builtin/internal/shell/supervise/job_windows.go":     "the path that a caller has found",
	"builtin/internal/shell/supervise/supervised_unix.go": "this program",
	"builtin/internal/shell/supervise/supervisor_unix.go": "the path that a caller has found",
	"cmd/toolhost/internal/conformance/relay.go":          "the program that a test names",
	"cmd/toolhost/farsite.go":                             "this program",
	"cmd/toolhost/run.go":                                 "looks at one absolute path",
	"cmd/toolhost/selftest_http.go":                       "this program",
	"cmd/toolhost/selftest_stdio.go":                      "this program",
	"cmd/toolhost/try.go":                                 "this program",
	"guard/sandbox/namespaces_start_linux.go":             "this program",
	"guard/sandbox/seatbelt_darwin.go":                    "a fixed path of the system",
	"guard/sandbox/internal/supervisor/spawn_linux.go":    "in the sandbox",
	"guard/sandbox/internal/supervisor/job_linux.go":      "in the sandbox",
	"mcpserver/internal/gateway/outside.go":               "finds the command of a server in the sandbox",
}

// TestUses: the host finds programs by this package only. A file that is new here must not look for a program in PATH.
func TestUses(t *testing.T) {
	left := map[string]bool{}
	for file := range resolved {
		left[file] = true
	}
	top := filepath.Join("..", "..")
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(top, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "integration" || name == "guard/hostprogram" || d.Name() == "testdata" ||
			strings.HasPrefix(name, ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		for _, use := range usesOf(file) {
			if resolved[name] == "" {
				t.Errorf("%s: %s: start and find programs of the host with guard/hostprogram", fset.Position(use.Pos()),
					use.Sel.Name)
			}
			delete(left, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range left {
		t.Errorf("%s starts nothing any more: take it off the list", name)
	}
}

// usesOf returns where a file starts or finds a program.
func usesOf(file *ast.File) (uses []*ast.SelectorExpr) {
	names := map[string][]string{} // by the name of the import
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = starts[path]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			if s, ok := literal.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Cmd" && isStart(s, names) {
				uses = append(uses, s)
			}
		}
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name != "Cmd" && isStart(s, names) { // a *exec.Cmd is only a type
			uses = append(uses, s)
		}
		return true
	})
	return uses
}

func isStart(s *ast.SelectorExpr, names map[string][]string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && slices.Contains(names[x.Name], s.Sel.Name)
}
