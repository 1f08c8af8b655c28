package privatefile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Whoever asks gets a secret. It is the same for all who share a directory, also when they ask at once.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	var all [8][]byte
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() {
			var err error
			if all[i], err = Secret(dir, "secret"); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	for _, secret := range all {
		if len(secret) != secretSize || !bytes.Equal(secret, all[0]) {
			t.Errorf("%x beside %x", secret, all[0])
		}
	}
	if other, err := Secret(dir, "other"); err != nil || bytes.Equal(other, all[0]) {
		t.Errorf("another name has the same secret, or none: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "secret")); err != nil || os.PathSeparator == '/' &&
		info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
}

// A secret that cannot be kept is one of this process, and it is said why.
func TestSecretThatIsNotKept(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "short"), []byte("guessed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, filled := range map[string]byte{"zeros": 0, "ones": 0xff} {
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte{filled}, secretSize), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, name, says string }{
		{"", "secret", "no state directory"},
		{dir, "short", "has 7 bytes, 32 are expected: delete it"},
		{dir, "zeros", "all its bytes are the same"},
		{dir, "ones", "delete it to make a new one"},
		{dir, "directory", "directory"},
		{filepath.Join(dir, "none"), "secret", "none"},
	} {
		first, err := Secret(tt.dir, tt.name)
		second, again := Secret(tt.dir, tt.name)
		if err == nil || again == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s/%s: %v, want %q", tt.dir, tt.name, err, tt.says)
		}
		if len(first) != secretSize || len(second) != secretSize || bytes.Equal(first, second) {
			t.Errorf("%s/%s: %x, then %x", tt.dir, tt.name, first, second)
		}
	}
}
