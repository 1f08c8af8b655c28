//go:build slow

package attack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestHostFileChanged: a file that has changed is not run until a person agreed. Other files of its directory are not
// held.
func TestHostFileChanged(t *testing.T) {
	t.Parallel()
	w, flags := newHostFiles(t)
	if ran, log := trigger(t, w, flags); strings.Count(ran, "\n") != len(hostFiles) {
		t.Fatalf("the files did not run: %q\n%s", ran, log)
	}
	for file := range hostFiles { // as a pull or an editor does
		host.Must(t, os.WriteFile(filepath.Join(w.ws, file), []byte(hostFile(w, file)+"# changed\n"), 0o755))
	}
	ran, log := trigger(t, w, flags)
	if ran != "" || strings.Count(log, "toolhost trust") < len(hostFiles) {
		t.Errorf("changed files ran: %q\n%s", ran, log)
	}
	for file := range hostFiles {
		cmd := exec.Command(host.Binary, "trust", "--yes", filepath.Join(w.ws, file))
		cmd.Env, cmd.Dir = host.CleanEnv(w.home), w.home
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if ran, log := trigger(t, w, flags); strings.Count(ran, "\n") != len(hostFiles) {
		t.Errorf("trusted files did not run: %q\n%s", ran, log)
	}
	h := w.hostWith(t, os.Getenv("PATH"), flags...)
	if said := h.call(t, "Write", `{"file_path":"tools/README","content":"x"}`, "write"); !said.ok {
		t.Errorf("another file cannot be written: %s", said.text)
	}
	host.Must(t, h.Stop())
}
