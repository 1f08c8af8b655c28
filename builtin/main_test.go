package builtin

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// TestMain lets the test binary be what a sandbox starts it as.
func TestMain(m *testing.M) {
	if sandbox.Init(os.Args) {
		return
	}
	supervise.Run(os.Args)
	os.Exit(m.Run())
}
