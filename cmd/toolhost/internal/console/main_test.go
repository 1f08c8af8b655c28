package console

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/builtin"
)

func TestMain(m *testing.M) {
	builtin.Reexec(os.Args) // commands run under this very binary
	// The clock by which replaced files are closed is the process's.
	goleak.VerifyTestMain(m)
}
