package guard

import (
	"os"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

func TestMain(m *testing.M) {
	testenv.Plain()
	os.Exit(m.Run())
}
