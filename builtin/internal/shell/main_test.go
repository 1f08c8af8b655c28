package shell

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	RunSupervisor(os.Args)
	runAsServer()
	goleak.VerifyTestMain(m)
}
