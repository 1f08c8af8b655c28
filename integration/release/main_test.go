package release

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

func TestMain(m *testing.M) {
	host.Main(m, "TestDocLinks", "TestErrorTexts", "TestHouse", "TestLayers", "TestRooms.*", "TestNames", "TestPinned")
}
