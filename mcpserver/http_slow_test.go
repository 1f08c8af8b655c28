//go:build slow

package mcpserver

import (
	"strings"
	"testing"
)

func TestProgressIsNotLost(t *testing.T) {
	t.Parallel()
	url, root := startWeb(t, nil, func(c *Config) { c.Allow = []string{"Bash"} })
	body := strings.Replace(callAs("Bash", working).body, `"_meta":{`, `"_meta":{"progressToken":"t",`, 1)
	for range 10 {
		endWorking(t, modern(body).open(t, url), root, "5")
	}
}
