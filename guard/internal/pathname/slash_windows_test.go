package pathname

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSlashed: paths go to the form of the rules and back.
func TestSlashed(t *testing.T) {
	for name, want := range map[string]string{
		`C:\`:            "/C:",
		`C:\x\y`:         "/C:/x/y",
		`\\server\sh\`:   "//server/sh",
		`\\server\sh\x`:  "//server/sh/x",
		`\\server\sh\x\`: "//server/sh/x",
	} {
		got := Slashed(name)
		if back := filepath.Clean(Native(got)); got != want || back != filepath.Clean(name) {
			t.Errorf("%s: %s, want %s; back again it is %s", name, got, want, back)
		}
		if IsVolume(got) != (strings.Count(name, "x") == 0) {
			t.Errorf("%s: volume %v", name, IsVolume(got))
		}
	}
}
