package integration

import (
	"go/ast"
	"go/build"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ceilings of the house. They are today's numbers: a commit may lower them, none may raise them.
const (
	maxPackages      = 61  // aim: 56
	maxExported      = 350 // names outside internal, without methods
	maxMethods       = 25  // of a type
	maxFunction      = 80  // lines
	maxFunctionOfP90 = 35  // lines that 9 of 10 functions stay within
)

// publicFace are the packages for programs in Go that embed the host. Every other package outside of internal says that it is not
// stable.
var publicFace = []string{"builtin", "guard", "mcpserver"}

// unstable is what the doc comment of a package says that is neither internal nor of the public face.
const unstable = "Its Go API is not stable"

// A house is what the product code consists of, without tests and integration.
type house struct {
	packages  int
	exported  []string
	methods   map[string]int // by type
	functions map[string]int // lines
	promising []string       // packages that should say that they are not stable
}

func measureHouse(t *testing.T) house {
	t.Helper()
	h := house{methods: map[string]int{}, functions: map[string]int{}}
	out, err := exec.Command("go", "list", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	h.packages = len(strings.Fields(string(out)))
	docs := map[string]string{}
	must(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (name == "integration" || name == "testdata" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		fset := gotoken.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		docs[dir] += file.Doc.Text()
		h.add(fset, dir, file, file.Name.Name != "main" && !strings.Contains(dir+"/", "/internal/"))
		return nil
	}))
	for dir, doc := range docs {
		if !strings.Contains(dir+"/", "/internal/") && !slices.Contains(publicFace, dir) && !strings.HasPrefix(dir, "cmd/") && !strings.Contains(strings.Join(strings.Fields(doc), " "), unstable) {
			h.promising = append(h.promising, dir)
		}
	}
	return h
}

// add counts what a file declares. A name that several systems declare counts once.
func (h *house) add(fset *gotoken.FileSet, dir string, file *ast.File, open bool) {
	export := func(id *ast.Ident) {
		if name := dir + "." + id.Name; open && id.IsExported() && !slices.Contains(h.exported, name) {
			h.exported = append(h.exported, name)
		}
	}
	native, _ := build.Default.MatchFile(filepath.Join("..", dir), filepath.Base(fset.Position(file.Pos()).Filename))
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := dir + "." + d.Name.Name
			if d.Recv == nil {
				export(d.Name)
			} else {
				receiver := dir + "." + receiverName(d.Recv.List[0].Type)
				name = receiver + "." + d.Name.Name
				if native {
					h.methods[receiver]++
				}
			}
			h.functions[name] = fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					export(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						export(id)
					}
				}
			}
		}
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
	if h.packages > maxPackages {
		t.Errorf("there are %d packages, at most %d are expected: merge one with its only importer", h.packages, maxPackages)
	}
	if n := len(h.exported); n > maxExported {
		t.Errorf("%d names are exported outside of internal, at most %d are expected: export only what another package uses", n, maxExported)
	}
	for name, n := range h.methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, at most %d are expected: split the type", name, n, maxMethods)
		}
	}
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
		t.Errorf("%s: the doc comment of the package does not say %q, and it is neither internal nor one of %v", dir, unstable, publicFace)
	}
	t.Logf("%d packages, %d exported names, functions up to %d lines at p90", h.packages, len(h.exported), p90)
}
