//go:build unix

package guard

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/integration/testenv"
)

func TestOwnerHomes(t *testing.T) {
	testenv.NeedsUsers(t)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	own, theirs := t.TempDir(), t.TempDir()
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, uid, -1); err != nil {
		t.Fatal(err)
	}
	bounds := []pathname.Place{{Given: own}, {Given: theirs}, {Given: theirs}, {Given: theirs + "/absent"}}
	if got := ownerHomes(bounds); !slices.Equal(got, []string{nobody.HomeDir}) {
		t.Errorf("got %q", got)
	}
}
