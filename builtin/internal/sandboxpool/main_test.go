package sandboxpool

import (
	"os"
	"testing"
)

// TestMain lets the test binary be what a sandbox starts it as.
func TestMain(m *testing.M) {
	if readAsCommand(os.Args) {
		return
	}
	os.Exit(m.Run())
}
