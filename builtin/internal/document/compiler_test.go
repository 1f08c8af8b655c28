package document

import (
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestCompiler: the first reading compiles nothing, and PDFium is compiled after it, once.
func TestCompiler(t *testing.T) {
	o := testOptions(t)
	o.Compiler = &Compiler{}
	if isCompiled(o.CacheDir) { // otherwise the tests after this one use what it compiles
		if samples.Step(1) > 1 {
			t.Skip("an earlier run has compiled it")
		}
		o.CacheDir = filepath.Join(t.TempDir(), "cache")
	}
	for _, compiled := range []bool{false, true} {
		if got := isCompiled(o.CacheDir); got != compiled {
			t.Errorf("compiled: %v, want %v", got, compiled)
		}
		p, err := PDF(t.Context(), openFile(t, makePDF("", textPage("Hello"))), 1, 1, o)
		if err != nil || len(p.Text) != 1 || p.Text[0] != "Hello" {
			t.Fatalf("%+v, %v", p, err)
		}
		o.Compiler.worker.Wait()
	}
	o.Compiler.Close()
}

// TestCompilerClosed ends a compilation that is under way, and starts none after that.
func TestCompilerClosed(t *testing.T) {
	o := testOptions(t)
	cache := t.TempDir()
	for range 2 {
		c := &Compiler{}
		c.start(o.program, request{CacheDir: cache, Seconds: 60})
		c.Close()
		c.start(o.program, request{CacheDir: cache, Seconds: 60})
		c.worker.Wait()
	}
	if isCompiled(cache) {
		t.Error("it was compiled to the end")
	}
	(*Compiler)(nil).start("", request{})
}
