package builtin

import (
	"errors"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// What could not be kept of an output is said once.
func TestUnkeptOutputNote(t *testing.T) {
	r := shell.Result{Shown: shell.Shown{SpillErr: errors.New("the whole output could not be kept: no space left on device")}}
	want := "The whole output could not be kept: no space left on device."
	if got := outcomeNotes(&r); !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
}
