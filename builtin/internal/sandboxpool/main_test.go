package sandboxpool

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestMain lets the test binary be what a sandbox starts it as.
func TestMain(m *testing.M) {
	testenv.Plain()
	if readAsCommand(os.Args) {
		return
	}
	os.Exit(m.Run())
}
