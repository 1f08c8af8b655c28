package sandboxpool

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestMain lets the test binary be what a sandbox starts it as.
func TestMain(m *testing.M) {
	if readAsCommand(os.Args) {
		return
	}
	testenv.Plain()
	os.Exit(m.Run())
}
