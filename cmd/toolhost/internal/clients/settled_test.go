package clients

import (
	"testing"

	"github.com/toolhost/toolhost/guard/settle"
)

// TestProjectFilesAreSettled asks that what a command writes into the file of a client in a project is held.
func TestProjectFilesAreSettled(t *testing.T) {
	for _, c := range All() {
		if c.Project != "" && settle.ClassOf("sub/"+c.Project) != settle.Held {
			t.Errorf("%s: %s is not in guard/settle/names.txt", c.Name, c.Project)
		}
	}
}
