package attack

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

func TestMain(m *testing.M) { host.Main(m, "TestAttackCoverage") }
