//go:build slow

package mcpserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

func TestThousandSessions(t *testing.T) {
	const atOnce = 50
	sessions := samples.Rounds(1000)
	address, root := startWeb(t, nil)
	for i := range sessions {
		writeFile(t, filepath.Join(root, fmt.Sprintf("f%d", i)), fmt.Sprintf("content of %d.\n", i))
	}
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	ids := make([]string, sessions)
	for i := range sessions {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			resp, _ := webRequest{body: initialize}.do(t, address)
			ids[i] = resp.Header.Get("Mcp-Session-Id")
		})
	}
	all.Wait()
	for i, id := range ids { // now all of them are open
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			q := webRequest{headers: map[string]string{"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}}
			q.body = toolCall(7, "Read", fmt.Sprintf(`{"file_path":"f%d"}`, i))
			if _, body := q.do(t, address); !strings.Contains(body, fmt.Sprintf("content of %d.", i)) {
				t.Errorf("session %d: %s", i, body)
			}
		})
	}
	all.Wait()
}
