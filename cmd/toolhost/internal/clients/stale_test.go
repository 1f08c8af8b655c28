package clients

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestRemoveStale: temporary files of killed processes go with the next write; those of others, and those of now, stay.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * staleAfter)
	for name, when := range map[string]time.Time{".a.json.1.tmp": old, ".a.json.2.tmp": time.Now(),
		".b.json.3.tmp": old, "a.json": old} {
		write(t, filepath.Join(dir, name), "", 0o600)
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir, ".a.json.*.tmp")
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if err != nil || !slices.Equal(left, []string{".a.json.2.tmp", ".b.json.3.tmp", "a.json"}) {
		t.Errorf("left: %q, %v", left, err)
	}
}
