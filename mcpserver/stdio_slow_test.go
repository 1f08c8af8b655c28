//go:build slow

package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/mcpserver/internal/stdio"
)

func TestReaderNeverBlocks(t *testing.T) {
	t.Parallel()
	c := startPipe(t, nil)
	calls := samples.Rounds(200)
	go func() {
		for i := range calls {
			c.send(toolCall(i, "Bash", fmt.Sprintf(`{"command":"until [ -e go ]; do sleep 0.01; done; echo %d >> order"}`, i)))
		}
		c.send(ping)
	}()
	if a := c.receive(); string(a.ID) != `"p"` {
		t.Fatalf("the first answer is to %s, not to the ping", a.ID)
	}
	writeFile(t, filepath.Join(c.root, "go"), "")
	answered := map[string]bool{}
	var order strings.Builder
	for i := range calls {
		fmt.Fprintln(&order, i)
		if a := c.receive(); a.Error != nil || answered[string(a.ID)] { // the answers may overtake each other
			t.Fatalf("answer %d is to %s: %+v", i, a.ID, a.Error)
		} else {
			answered[string(a.ID)] = true
		}
	}
	if ran, err := os.ReadFile(filepath.Join(c.root, "order")); err != nil || string(ran) != order.String() {
		t.Errorf("the calls ran in the order %q, %v", ran, err)
	}
}

func TestEndOfInput(t *testing.T) {
	t.Parallel()
	for name, tt := range ends {
		t.Run(name, func(t *testing.T) {
			said, late := endedWhileRunning(t, tt.end)
			for try := 0; late && try < 10; try++ { // on a machine under load a command can take longer to end than is waited for
				said, late = endedWhileRunning(t, tt.end)
			}
			if a, ok := said["1"]; !ok || a.Error != nil {
				t.Errorf("a call that has finished: %+v", a)
			}
			if two, three := said["2"], said["3"]; tt.told &&
				(!strings.Contains(string(two.Result), "cancelled and ended") ||
					!strings.Contains(string(three.Result), "the host is closing")) {
				t.Errorf("of the calls that were ended the client is told %s and %s", two.Result, three.Result)
			}
		})
	}
}

// endedWhileRunning lets a client go away while a command runs and another waits, and returns what it is told by its id, and whether
// the host had no time left to tell more.
func endedWhileRunning(t *testing.T, end func(*pipeClient)) (said map[string]rpcAnswer, late bool) {
	t.Helper()
	c := startPipe(t, map[string]string{"a.txt": "a\n"})
	c.send(toolCall(1, "Read", `{"file_path":"a.txt"}`))
	c.send(toolCall(2, "Bash", `{"command":"touch started; sleep 600"}`))
	c.send(toolCall(3, "Bash", `{"command":"sleep 600"}`))
	await(t, filepath.Join(c.root, "started")) // the sandbox may take longer to start than calls are let run on
	began := time.Now()
	end(c)
	said = map[string]rpcAnswer{}
	for line, err := c.out.ReadBytes('\n'); err == nil; line, err = c.out.ReadBytes('\n') {
		var a rpcAnswer
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("not the protocol: %q", line)
		}
		said[string(a.ID)] = a
	}
	took := time.Since(began)
	c.awaitEnd()
	return said, len(said) < 3 && took > stdio.MostEOF
}
