package builtin

import (
	"os"
	"testing"

	"toolhost/builtin/internal/shell/supervise"
	"toolhost/guard/sandbox"
)

// TestMain lets the test binary be what a cell starts it as.
func TestMain(m *testing.M) {
	if sandbox.Init(os.Args) {
		return
	}
	supervise.Run(os.Args)
	os.Exit(m.Run())
}
