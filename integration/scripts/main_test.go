package scripts

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

func TestMain(m *testing.M) { host.Main(m, "TestScriptsRunToTheirEnd") }
