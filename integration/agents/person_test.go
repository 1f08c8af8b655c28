package agents

import (
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A person is a host.Person who runs agents.
type person struct{ host.Person }

func newPerson(t testing.TB) person { return person{host.NewPerson(t)} }
