package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestPreparedForSearch: a root that was searched before is looked through from the start, if calls will come, and no other.
func TestPreparedForSearch(t *testing.T) {
	testenv.NeedsNotifications(t)
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor prepares nothing")
	}
	state, roots := t.TempDir(), map[string]string{}
	for _, name := range []string{"searched", "new"} {
		roots[name] = filepath.Join(state, name)
		if err := os.MkdirAll(roots[name], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256([]byte(roots["searched"])) // see disk.Dir: what it holds is not looked at yet
	saved := filepath.Join(state, "search", hex.EncodeToString(sum[:16])+".idx")
	if err := os.MkdirAll(filepath.Dir(saved), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(saved, []byte("an index"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		ahead    bool
		persist  bool
		prepared bool
	}{
		{"searched", true, true, true}, {"searched", true, false, false}, {"searched", false, true, false}, {"new", true, true, false},
	} {
		cfg := RuntimeConfig{StateDir: state, Search: settings.Search{Index: true, Persist: tt.persist, Memory: 16}, Log: slog.New(slog.DiscardHandler)}
		if tt.ahead {
			cfg.Root = roots[tt.name]
		}
		box, err := OpenRuntime(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s := box.SearchStats(roots[tt.name]); (s.State != "walking") != tt.prepared {
			t.Errorf("%+v: %+v", tt, s)
		}
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
}
