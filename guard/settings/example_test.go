package settings_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/settings"
)

// A cloned repository's deny counts at once, its allow when its user trusts it.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "work")
	text := `{"permissions": {
		"deny": ["Read(.env)"],
		"allow": ["Bash(make *)"], // shipped by the repository
	}}`
	if err := os.MkdirAll(filepath.Join(root, ".claude"), 0o755); err != nil {
		fmt.Println(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".claude", "settings.json"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
	}
	cfg := settings.Config{Roots: []string{root}, StateDir: filepath.Join(dir, "state"),
		ManagedDir: filepath.Join(dir, "etc")}

	show := func(s *settings.Settings) {
		fmt.Println("deny", len(s.Deny), "allow", len(s.Allow), "trusted", s.Trusted)
		for _, e := range s.Untrusted {
			fmt.Println("left out:", e.Text)
		}
	}
	show(settings.Load(cfg))
	review, err := settings.Inspect(cfg, root) // whose Entries a person looks at
	if err == nil {
		err = review.Trust()
	}
	if err != nil {
		fmt.Println(err)
	}
	show(settings.Load(cfg))
	// Output:
	// deny 1 allow 0 trusted false
	// left out: permissions.allow: Bash(make *)
	// deny 1 allow 1 trusted true
}
