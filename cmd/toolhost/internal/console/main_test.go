package console

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The clock by which replaced files are closed is the process's, and so is the thread that starts sandboxes.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/toolhost/toolhost/guard/sandbox/internal/kernel.NewThread.func1"))
}
