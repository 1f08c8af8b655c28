package scripts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestKeptResult reads on in a result that was too long, as the result itself says to.
func TestKeptResult(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
	defer cancel()
	home, ws := host.TempDir(t), host.TempDir(t)
	h, err := host.StartHost(ctx, host.Settings[0], ws, host.CleanEnv(home), "--root", ws)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	call := func(tool, args string) string {
		t.Helper()
		r, err := h.Call(ctx, tool, args)
		if err != nil {
			t.Fatal(err)
		}
		if r.IsError {
			t.Fatalf("%s: %s", tool, r.Text())
		}
		return r.Text()
	}
	text := call("Bash", `{"command":"seq -f 'number %g' 30000"}`)
	path := regexp.MustCompile(filepath.Join(home, "state") + `/[^\s:,]+`).FindString(text)
	if path == "" {
		t.Fatalf("the result does not say where the whole is:\n%s", text[max(0, len(text)-600):])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the whole is at %s: %v, %v", path, info, err)
	}
	if got := call("Read", fmt.Sprintf(`{"file_path":%q,"offset":15000,"limit":1}`, path)); !strings.Contains(got,
		"number 15000") {
		t.Errorf("reading on: %s", got)
	}
	if got := call("Grep", fmt.Sprintf(`{"path":%q,"pattern":"number 2999[0-9]$","output_mode":"content"}`,
		path)); strings.Count(got, "number 2999") != 10 {
		t.Errorf("searching on: %s", got)
	}
	// Next to it lies what is no one's business.
	for _, other := range []string{"secret", "audit.jsonl", "results"} {
		r, err := h.Call(ctx, "Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(home, "state", "toolhost", other)))
		if err != nil {
			t.Fatal(err)
		}
		if !r.IsError {
			t.Errorf("the host's %s can be read: %s", other, r.Text())
		}
	}
}
