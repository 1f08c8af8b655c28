package console

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The clock by which replaced files are closed is the process's.
	goleak.VerifyTestMain(m)
}
