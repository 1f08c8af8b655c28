package release

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/testenv"
)

// A docTree is what the comments of this repository can name.
type docTree struct {
	fset     *token.FileSet
	files    map[string]*ast.File         // by path from the top
	packages map[string]map[string]bool   // declarations by import path: "Name" or "Type.Method"
	imports  map[string]map[string]string // import paths by directory and name
	paths    map[string]bool              // files, directories, and the last elements of both
}

func readDocTree(t *testing.T) *docTree {
	t.Helper()
	d := &docTree{
		fset: token.NewFileSet(), files: map[string]*ast.File{}, packages: map[string]map[string]bool{},
		imports: map[string]map[string]string{}, paths: map[string]bool{},
	}
	host.Must(t, filepath.WalkDir("../..", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash("../../")))
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules") {
			return filepath.SkipDir
		}
		d.paths[rel], d.paths[path.Base(rel)] = true, true
		if path.Ext(rel) != ".go" || strings.Contains(rel, "testdata/") {
			return nil
		}
		file, err := parser.ParseFile(d.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			d.add(rel, file)
		}
		return err
	}))
	return d
}

func (d *docTree) add(rel string, file *ast.File) {
	dir := path.Dir(rel)
	d.files[rel] = file
	d.declare(host.Module+dir, file)
	if d.imports[dir] == nil {
		d.imports[dir] = map[string]string{file.Name.Name: host.Module + dir}
	}
	for _, spec := range file.Imports {
		at, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		name := path.Base(at)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		d.imports[dir][name] = at
	}
}

// declare adds the declarations of a file.
func (d *docTree) declare(at string, file *ast.File) {
	names := d.packages[at]
	if names == nil {
		names = map[string]bool{}
		d.packages[at] = names
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv != nil {
				names[receiverName(decl.Recv.List[0].Type)+"."+decl.Name.Name] = true
			} else {
				names[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				declareSpec(names, spec)
			}
		}
	}
}

func declareSpec(names map[string]bool, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[spec.Name.Name] = true
		var members *ast.FieldList
		switch kind := spec.Type.(type) {
		case *ast.InterfaceType:
			members = kind.Methods
		case *ast.StructType:
			members = kind.Fields
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				names[spec.Name.Name+"."+name.Name] = true
			}
		}
	}
}

// goRoot is where the standard library lies. A test that is built with -trimpath does not know.
var goRoot = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out)), err
})

// standard adds the declarations of a package of the standard library, and reports whether there is such a package.
func (d *docTree) standard(at string) bool {
	if d.packages[at] != nil {
		return true
	}
	root, _ := goRoot() // without it, nothing is found
	files, _ := filepath.Glob(filepath.Join(root, "src", filepath.FromSlash(at), "*.go"))
	for _, name := range files {
		if file, err := parser.ParseFile(d.fset, name, nil, parser.SkipObjectResolution); err == nil {
			d.declare(at, file)
		}
	}
	return d.packages[at] != nil
}

// identifier matches a name with letters of both cases. Other single words in brackets stand for an argument: [FLAG],
// [name].
var identifier = regexp.MustCompile(`^\w*([a-z]\w*[A-Z]|[A-Z]\w*[a-z])\w*$`)

// links returns the doc links in a comment, whether their declarations exist or not.
func links(text string) (list []*comment.DocLink) {
	var p comment.Parser
	p.LookupPackage = func(name string) (string, bool) { return name, token.IsIdentifier(name) }
	p.LookupSym = func(recv, name string) bool { return recv != "" || identifier.MatchString(name) }
	var collect func(any)
	collect = func(part any) {
		switch part := part.(type) {
		case []comment.Block:
			for _, b := range part {
				collect(b)
			}
		case []comment.Text:
			for _, t := range part {
				collect(t)
			}
		case *comment.Paragraph:
			collect(part.Text)
		case *comment.List:
			for _, item := range part.Items {
				collect(item.Content)
			}
		case *comment.DocLink:
			if part.Name != "" || identifier.MatchString(part.ImportPath) {
				list = append(list, part)
			}
		}
	}
	collect(p.Parse(text).Content)
	return list
}

// resolves reports whether a doc link in a directory leads to a declaration or a package.
func (d *docTree) resolves(dir string, l *comment.DocLink) bool {
	at, symbol := l.ImportPath, strings.TrimPrefix(l.Recv+"."+l.Name, ".")
	// The parser takes an unexported name of this package for the name of another package.
	if here := d.packages[host.Module+dir]; at == "" || here[strings.TrimSuffix(at+"."+symbol, ".")] {
		return at != "" || here[symbol]
	}
	if full := d.imports[dir][at]; full != "" {
		at = full
	} else if full, ok := comment.DefaultLookupPackage(at); ok {
		at = full
	}
	if first, _, _ := strings.Cut(at, "/"); strings.Contains(first, ".") && !strings.HasPrefix(at, host.Module) {
		return true // of another module
	}
	return d.standard(at) && (symbol == "" || d.packages[at][symbol])
}

// qualified matches a name with the package that declares it.
var qualified = regexp.MustCompile(`\b([a-z]\w+)\.(?:([A-Z]\w+)\.)?([A-Z]\w+)`)

// named returns the doc links in a comment of a directory, and the names of other packages of this repository without
// brackets.
func (d *docTree) named(dir, text string) []*comment.DocLink {
	list := links(text)
	for _, m := range qualified.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(d.imports[dir][m[1]], host.Module) {
			list = append(list, &comment.DocLink{ImportPath: m[1], Recv: m[2], Name: m[3]})
		}
	}
	return list
}

const topDirectories = `builtin|cmd|guard|integration|mcpserver|readstate|resultstore|\.ci|\.github|\.release`

var (
	// repositoryPath matches a path from the top of the repository, in which a word in capitals stands for any.
	repositoryPath = regexp.MustCompile("(?:^|[\\s(\"`])((?:" + topDirectories + `)(?:/[\w.-]+)+)`)
	goFile         = regexp.MustCompile(`[\w./-]+\.go\b`)
	placeholder    = regexp.MustCompile(`[A-Z]{3,}`)
)

// missing returns the paths and Go files of the repository in a text that do not exist.
func (d *docTree) missing(text string) (list []string) {
	check := func(name string) {
		name = strings.TrimRight(name, ".-")
		if !d.paths[name] && !d.paths[strings.TrimPrefix(name, "../")] {
			list = append(list, name)
		}
	}
	for _, m := range repositoryPath.FindAllStringSubmatch(text, -1) {
		if !placeholder.MatchString(m[1]) {
			check(m[1])
		}
	}
	for _, name := range goFile.FindAllString(text, -1) {
		if !placeholder.MatchString(name) {
			check(name)
		}
	}
	return list
}

// misnamed returns the name of another declaration that the doc comment of a function or single declaration begins
// with.
func (d *docTree) misnamed(dir string, decl ast.Decl) (*ast.CommentGroup, string) {
	var doc *ast.CommentGroup
	own := map[string]bool{}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		doc, own[decl.Name.Name] = decl.Doc, true
	case *ast.GenDecl:
		doc = decl.Doc
		for _, spec := range decl.Specs {
			declareSpec(own, spec)
		}
	}
	first, _, _ := strings.Cut(doc.Text(), " ")
	if innerCapital.MatchString(first) && !own[first] && d.packages[host.Module+dir][first] {
		return doc, first
	}
	return nil, ""
}

// innerCapital matches a name that is no word at the beginning of a sentence.
var innerCapital = regexp.MustCompile(`^\w*[a-z][A-Z]\w*$`)

// TestDocLinks: what a comment or the page on the architecture names in this repository exists.
func TestDocLinks(t *testing.T) {
	testenv.NotShort(t, "reads the whole project")
	d := readDocTree(t)
	for name, file := range d.files {
		for _, group := range file.Comments {
			text, at := group.Text(), name+":"+strconv.Itoa(d.fset.Position(group.Pos()).Line)
			for _, l := range d.named(path.Dir(name), text) {
				if !d.resolves(path.Dir(name), l) {
					t.Errorf("%s: %s is not declared", at, strings.Join([]string{l.ImportPath, l.Recv, l.Name}, " "))
				}
			}
			for _, gone := range d.missing(text) {
				t.Errorf("%s: %s does not exist", at, gone)
			}
		}
	}
	for name, file := range d.files {
		for _, decl := range file.Decls {
			if doc, other := d.misnamed(path.Dir(name), decl); doc != nil {
				t.Errorf("%s: the comment is about %s", d.fset.Position(doc.Pos()), other)
			}
		}
	}
	pages, err := filepath.Glob(filepath.FromSlash("../../.github/*.md"))
	host.Must(t, err)
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		host.Must(t, err)
		text := string(raw)
		if filepath.Base(page) == "ARCHITECTURE.md" {
			for _, gone := range d.missing(text) {
				t.Errorf("%s: %s does not exist", page, gone)
			}
		}
		for _, name := range testNames.FindAllString(text, -1) {
			if !d.declared(name) {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
	}
}

// testNames finds the names of tests in a page.
var testNames = regexp.MustCompile(`\bTest[A-Z]\w*`)

// declared reports whether a package declares a name.
func (d *docTree) declared(name string) bool {
	for _, names := range d.packages {
		if names[name] {
			return true
		}
	}
	return false
}
