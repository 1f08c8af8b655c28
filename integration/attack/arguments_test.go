//go:build unix

package attack

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// A wire speaks to a host in bytes, as no client library would.
type wire struct {
	t    *testing.T
	in   io.WriteCloser
	all  strings.Builder // everything that was received
	next int
	got  chan string
}

func (w *world) wire(t *testing.T, flags ...string) *wire {
	t.Helper()
	cmd := exec.Command(host.Binary, append([]string{"stdio"}, flags...)...)
	cmd.Dir, cmd.Env = w.ws, host.CleanEnv(w.home)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &wire{t: t, in: in, got: make(chan string, 64)}
	go func() {
		defer close(c.got)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			c.got <- line
		}
	}()
	t.Cleanup(func() {
		in.Close()
		for range c.got {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the host ended with: %v", err)
		}
	})
	return c
}

// call sends a call whose arguments are any bytes, then a ping, and returns what was answered to the call:
// "" when only the ping was.
func (c *wire) call(tool, args string) string {
	c.t.Helper()
	c.next += 2
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"a","version":"0"}}`, client.Modern)
	id, ping := fmt.Sprint(c.next), fmt.Sprint(c.next+1)
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` +
		args + `,` + meta + `}}`)
	c.send(`{"jsonrpc":"2.0","id":` + ping + `,"method":"tools/list","params":{` + meta + `}}`)
	var answer string
	alive := false
	for line := range c.lines(func() bool { return alive && answer != "" }) {
		c.all.WriteString(line)
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Errorf("the host wrote what is no JSON: %.200q", line)
		}
		switch string(m.ID) {
		case id, "null", "":
			answer = line
		case ping:
			alive = true
		}
	}
	if !alive {
		c.t.Errorf("after %s %.200s the host no longer answers", tool, args)
	}
	return answer
}

func (c *wire) send(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("the host is gone: %v", err)
	}
}

// lines yields what is received until done.
func (c *wire) lines(done func() bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		late := time.After(host.Patience)
		for !done() {
			select {
			case line, ok := <-c.got:
				if !ok || !yield(line) {
					return
				}
			case <-late:
				return
			}
		}
	}
}

// TestAttackArguments sends arguments that are no proper ones. Each must be answered, by an error unless it
// means what it says, and the host must live on.
func TestAttackArguments(t *testing.T) {
	w := newWorld(t)
	c := w.wire(t, profileFlags(w, "rules")...)
	long := strings.Repeat("a", 1<<20)
	tests := []struct {
		tool, args string
		fine       bool // may succeed: the arguments are unusual but mean something harmless
	}{
		// Duplicate keys: what is judged must be what is done.
		{"Read", `{"file_path":"src/main.go","file_path":".env"}`, false},
		{"Read", `{"file_path":".env","file_path":"src/main.go"}`, true},
		{"Read", `{"file_path":"src/main.go","FILE_PATH":".env"}`, false},
		{"Read", `{"File_Path":".env"}`, false},
		{"Read", `{"file_path":"src/main.go","file\u005fpath":".env"}`, false},
		{"Bash", `{"command":"true","command":"rm keep.txt"}`, false},
		{"Bash", `{"command":"rm keep.txt","Command":"true"}`, false},
		{"Bash", `{"command":"X=.e; cat ${X}nv","dangerouslyDisableSandbox":false,"dangerouslyDisableSandbox":true}`, false},
		{"Bash", `{"command":"X=.e; cat ${X}nv","DangerouslyDisableSandbox":true}`, false},
		// Escapes and encodings of a denied name.
		{"Read", `{"file_path":"\u002e\u0065\u006e\u0076"}`, false},
		{"Read", `{"file_path":"\u002Eenv\u0000"}`, false},
		{"Read", `{"file_path":".env\ud800"}`, false},
		{"Read", `{"file_path":"\udfff\ud800.env"}`, false},
		{"Read", "{\"file_path\":\".env\xff\"}", false},
		{"Read", "{\"file_path\":\"\xc0\xae\xc0\xaeenv\"}", false},
		{"Read", "{\"file_path\":\"\xef\xbb\xbf.env\"}", false},
		{"Read", `{"file_path":".env\u202e"}`, false},
		{"Read", `{"file_path":"ｓecrets/zebra9f3.key"}`, false},
		// Values of another type than is expected.
		{"Read", `{"file_path":["./.env"]}`, false},
		{"Read", `{"file_path":"[\".env\"]"}`, false},
		{"Read", `{"file_path":"{\"file_path\":\".env\"}"}`, false},
		{"Read", `{"file_path":{"toString":".env"}}`, false},
		{"Read", `{"file_path":null}`, false},
		{"Read", `{"file_path":true}`, false},
		{"Read", `{"file_path":1e999}`, false},
		{"Read", `".env"`, false},
		{"Read", `"{\"file_path\":\".env\"}"`, false},
		{"Read", `[".env"]`, false},
		{"Read", `null`, false},
		{"Read", `{}`, false},
		{"Read", `{"__proto__":{"file_path":".env"},"file_path":"src/main.go"}`, false},
		// Numbers out of range.
		{"Read", `{"file_path":"src/main.go","offset":9007199254740992}`, true},
		{"Read", `{"file_path":"src/main.go","offset":9223372036854775807}`, true},
		{"Read", `{"file_path":"src/main.go","offset":9223372036854775808}`, false},
		{"Read", `{"file_path":"src/main.go","offset":-1}`, false},
		{"Read", `{"file_path":"src/main.go","offset":0}`, true},
		{"Read", `{"file_path":"src/main.go","offset":1.5}`, false},
		{"Read", `{"file_path":"src/main.go","offset":"1e400"}`, false},
		{"Read", `{"file_path":"src/main.go","offset":"NaN"}`, false},
		{"Read", `{"file_path":"src/main.go","limit":9223372036854775807,"offset":9223372036854775807}`, true},
		{"Read", `{"file_path":"src/main.go","limit":1E2}`, true},
		{"Read", `{"file_path":"src/main.go","pages":"1-99999999999999999999"}`, false},
		{"Bash", `{"command":"true","timeout":-9223372036854775808}`, true},
		{"Bash", `{"command":"true","timeout":9223372036854775807}`, true},
		{"Grep", `{"pattern":"x","head_limit":9223372036854775807,"offset":9223372036854775807}`, true},
		{"Grep", `{"pattern":"x","-C":9223372036854775807,"output_mode":"content"}`, true},
		{"Grep", `{"pattern":"x","-A":-5}`, false},
		{"Grep", `{"pattern":"x","output_mode":"shell"}`, false},
		// Sizes.
		{"Read", `{"file_path":"` + long + `"}`, false},
		{"Read", `{"file_path":"` + strings.Repeat("a/", 5000) + `x"}`, false},
		{"Read", `{"file_path":"` + strings.Repeat("../", 1300) + `etc/passwd"}`, false},
		{"Read", `{"file_path":"` + strings.Repeat("a", 300) + `"}`, false},
		{"Write", `{"file_path":"` + strings.Repeat("d/", 2040) + `x","content":""}`, true},
		{"Write", `{"file_path":"` + strings.Repeat("n", 256) + `","content":"x"}`, false},
		{"Bash", `{"command":"` + long + `"}`, false},
		{"Bash", `{"command":"true ` + strings.Repeat("x ", 200000) + `"}`, false},
		{"Glob", `{"pattern":"` + long + `"}`, true},
		{"Grep", `{"pattern":"` + long + `"}`, true},
		{"Grep", `{"pattern":"` + strings.Repeat("(", 100000) + `"}`, false},
		{"Grep", `{"pattern":"` + strings.Repeat("(a|", 5000) + strings.Repeat(")", 5000) + `"}`, true},
		{"Grep", `{"pattern":"x","glob":"` + strings.Repeat("{a,", 5000) + `"}`, true},
		{"Edit", `{"file_path":"src/main.go","old_string":"` + long + `","new_string":""}`, false},
		{"Read", `{"` + long + `":1}`, false},
		{"Read", `{"file_path":"x","a":` + strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000) + `}`, false},
		{"Read", strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000), false},
		{"Read", `{"file_path":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}`, false},
		// What is no JSON at all.
		{"Read", `{"file_path":".env"`, false},
		{"Read", `{'file_path':'.env'}`, false},
		{"Read", `{"file_path":".env",}`, false},
		{"Read", `{"file_path":NaN}`, false},
		{"Read", "{\"file_path\":\"a\x00b\"}", false},
		{"Read", "{\"file_path\":\"a\tb\"}", false},
	}
	for _, tt := range tests {
		shown := host.Clip(tt.tool+" "+tt.args, 160)
		answer := c.call(tt.tool, tt.args)
		if answer == "" {
			t.Errorf("%s: no answer", shown)
		}
		if refused := strings.Contains(answer, `"isError":true`) ||
			strings.Contains(answer, `"error":{`); !refused && !tt.fine {
			t.Errorf("%s: it was done: %s", shown, host.Clip(answer, 400))
		}
		if leak := w.leaks(answer, tt.args); leak != "" {
			t.Errorf("%s: %s was shown: %s", shown, leak, host.Clip(answer, 400))
		}
		for _, change := range w.changes() {
			t.Errorf("%s: %s", shown, change)
		}
		if len(answer) > 100_000 {
			t.Errorf("%s: the answer has %d bytes", shown, len(answer))
		}
	}
}
