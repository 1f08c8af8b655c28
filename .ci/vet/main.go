// Command vet checks the packages of this directory as go vet does, for systems named as SYSTEM/PROCESSOR. It reads
// what they import from its source: go vet compiles all of it for each system, for its types alone.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	status := 0
	for _, target := range os.Args[1:] {
		wrong, err := check(target)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
		}
		if wrong || err != nil {
			status = 1
		}
	}
	os.Exit(status)
}

// check reports whether something is wrong with a package.
func check(target string) (wrong bool, err error) {
	here, err := os.Getwd()
	if err != nil {
		return false, err
	}
	system, processor, _ := strings.Cut(target, "/")
	list, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax | packages.NeedModule, Tests: true, BuildFlags: []string{"-tags=slow"},
		Env: append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
			if err == nil && !strings.HasPrefix(name, here+"/") {
				for _, d := range f.Decls { // their types are enough
					if fn, ok := d.(*ast.FuncDecl); ok {
						fn.Body = nil
					}
				}
			}
			return f, err
		},
	}, "./...")
	if err != nil {
		return false, err
	}
	// Go test writes a main package, whose ID ends with this.
	list = slices.DeleteFunc(list, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") })
	packages.Visit(list, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main { // imports that only the bodies need
			p.Errors, p.TypeErrors = nil, nil
		}
		p.IllTyped = len(p.Errors) > 0
	})
	if packages.PrintErrors(list) > 0 {
		return true, nil
	}
	// Go vet of Go 1.26 does not have this check.
	checks := slices.DeleteFunc(slices.Clone(vet.Suite), func(a *analysis.Analyzer) bool { return a.Name == "scannererr" })
	found, err := checker.Analyze(checks, list, nil)
	if err != nil {
		return false, err
	}
	for _, root := range found.Roots {
		wrong = wrong || root.Err != nil || len(root.Diagnostics) > 0
	}
	return wrong, found.PrintText(os.Stderr, -1)
}
