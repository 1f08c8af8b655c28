package release

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// Ceilings of the product code, in lines.
const (
	maxFunction      = 80
	maxFunctionOfP90 = 35 // of 9 of 10 functions
)

// publicFace are the packages for programs in Go that embed the host. Every other package outside of internal says that it is not
// stable.
var publicFace = []string{"builtin", "guard", "mcpserver"}

// unstable is what the doc comment of a package says that is neither internal nor of the public face.
const unstable = "Its Go API is not stable"

// A house is what the product code consists of, without tests and integration.
type house struct {
	functions map[string]int // lines
	promising []string       // packages that should say that they are not stable
}

func measureHouse(t *testing.T) house {
	t.Helper()
	h := house{functions: map[string]int{}}
	docs := map[string]string{}
	host.Must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != "../.." && (name == "integration" || name == "testdata" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))
		docs[dir] += file.Doc.Text()
		h.add(fset, dir, file)
		return nil
	}))
	for dir, doc := range docs {
		if !strings.Contains(dir+"/", "/internal/") && !slices.Contains(publicFace, dir) &&
			!strings.HasPrefix(dir, "cmd/") && !strings.Contains(strings.Join(strings.Fields(doc), " "), unstable) {
			h.promising = append(h.promising, dir)
		}
	}
	return h
}

// add notes the length of each function that a file declares.
func (h *house) add(fset *token.FileSet, dir string, file *ast.File) {
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := dir + "." + d.Name.Name
		if d.Recv != nil {
			name = dir + "." + receiverName(d.Recv.List[0].Type) + "." + d.Name.Name
		}
		h.functions[name] = fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
	}
}

func receiverName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiverName(x.X)
	case *ast.IndexExpr:
		return receiverName(x.X)
	case *ast.IndexListExpr:
		return receiverName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}

// TestHouse holds the product code against its ceilings.
func TestHouse(t *testing.T) {
	h := measureHouse(t)
	var lengths []int
	for name, n := range h.functions {
		lengths = append(lengths, n)
		if n > maxFunction {
			t.Errorf("%s has %d lines, at most %d are expected", name, n, maxFunction)
		}
	}
	slices.Sort(lengths)
	p90 := lengths[len(lengths)*9/10]
	if p90 > maxFunctionOfP90 {
		t.Errorf("9 of 10 functions have up to %d lines, at most %d are expected", p90, maxFunctionOfP90)
	}
	for _, dir := range h.promising {
		t.Errorf("%s: the doc comment of the package does not say %q, and it is neither internal nor one of %v", dir,
			unstable, publicFace)
	}
	t.Logf("functions of up to %d lines at p90", p90)
}
