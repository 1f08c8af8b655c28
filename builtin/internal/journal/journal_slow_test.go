//go:build slow

package journal

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestBeginRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	s := open(t, Config{Dir: filepath.Join(t.TempDir(), "history")})
	for name, c := range map[string]Change{
		"nobody":   {Path: "/f"},
		"everyone": {Principal: AllPrincipals, Path: "/f"},
		"relative": {Principal: "p", Path: "f"},
		"too long": {Principal: "p", Path: "/" + strings.Repeat("x", maxLine)},
	} {
		if runtime.GOOS == "windows" {
			c.Path = strings.Replace(c.Path, "/", `C:\`, 1)
		}
		if _, err := s.Begin(c, nil, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if names := stored(t, s, packsName); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
	if _, err := Open(Config{Dir: "relative"}); err == nil {
		t.Error("a relative directory: no error")
	}
}
