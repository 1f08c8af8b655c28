package settings_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestEverySettingIsAskedFor: a setting that nothing outside of this package looks at
// has no effect, whatever its documentation promises.
func TestEverySettingIsAskedFor(t *testing.T) {
	asked := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Dir(path) == filepath.Join("..", "..", "guard", "settings") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				asked[s.Sel.Name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var look func(of reflect.Type, name string)
	look = func(of reflect.Type, name string) {
		for i := range of.NumField() {
			f := of.Field(i)
			if !asked[f.Name] && f.Name != "Trusted" { // which only sums Untrusted up
				t.Errorf("%s%s is set from files, and nothing asks for it", name, f.Name)
			}
			if f.Type.Kind() == reflect.Struct {
				look(f.Type, name+f.Name+".")
			}
		}
	}
	look(reflect.TypeFor[settings.Settings](), "")
}
