package web

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

func TestMain(m *testing.M) {
	supervise.Run(os.Args) // the supervisor of a command is this very program
	os.Exit(m.Run())
}
