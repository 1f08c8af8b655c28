package release

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

//go:generate go test . -run TestErrorTexts -update

// says are the functions whose texts a person or a model reads when something is refused or fails.
var says = regexp.MustCompile(`^(errors\.New|fmt\.Errorf|.*(?i:refus|deny|denied|failf|errorf|usage|invalid|unusable).*)$`)

// TestErrorTexts holds the list of all texts of errors and refusals against the code, so that they can be read, and reviewed, as
// one list. A verb of fmt stands for a value.
func TestErrorTexts(t *testing.T) {
	var texts []string
	for _, dir := range []string{"builtin", "cmd", "guard", "mcpserver", "readstate", "resultstore"} {
		host.Must(t, filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if says.MatchString(calledName(n.Fun)) {
						for _, arg := range n.Args {
							texts = append(texts, sentence(arg)...)
						}
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Reason" || key.Name == "reason") {
						texts = append(texts, sentence(n.Value)...)
					}
				}
				return true
			})
			return nil
		}))
	}
	slices.Sort(texts)
	upToDate(t, filepath.Join("testdata", "errors.txt"), func([]byte) []byte {
		return []byte(strings.Join(slices.Compact(texts), "\n") + "\n")
	})
}

// calledName is the name of a called function, with its package or receiver.
func calledName(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
		return "." + f.Sel.Name
	}
	return ""
}

// sentence is the text of a literal, or of literals put together, if it is more than one word.
func sentence(e ast.Expr) []string {
	text := literal(e)
	if !strings.Contains(strings.TrimSpace(text), " ") {
		return nil
	}
	return []string{strings.ReplaceAll(text, "\n", `\n`)}
}

func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == gotoken.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		x, y := literal(e.X), literal(e.Y)
		if e.Op == gotoken.ADD && x+y != "" {
			return x + y
		}
	case *ast.ParenExpr:
		return literal(e.X)
	}
	return ""
}
