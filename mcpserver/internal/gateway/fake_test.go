package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fake is a server that does what a script says. Each line names a method and what is done when it is asked for; "start" is before
// anything is asked. A request without lines gets a useful answer.
type fake struct {
	lines []string
	out   io.Writer
	mu    sync.Mutex
	count map[string]int
	last  string // answer
}

// fakeVariable holds the script of a process that is a fake.
const fakeVariable = "TOOLHOST_FAKE_SERVER"

func TestMain(m *testing.M) {
	if script := os.Getenv(fakeVariable); script != "" {
		runFake(script)
		os.Exit(0)
	}
	probeTime, firstList = connectTime/2, connectTime
	os.Exit(m.Run())
}

func newFake(script string, out io.Writer) *fake {
	f := &fake{out: out, count: map[string]int{}}
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			f.lines = append(f.lines, line)
		}
	}
	return f
}

// runFake is a server over stdio.
func runFake(script string) {
	f := newFake(script, os.Stdout)
	f.act("start", message{})
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	served := make(chan message, 100)
	go func() {
		for m := range served {
			f.serve(m)
		}
	}()
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(line, &m) == nil && m.Method == "" {
			f.serve(m)
		} else if err == nil {
			served <- m
		}
	}
	f.act("eof", message{})
}

func (f *fake) serve(m message) {
	if m.Method == "" {
		f.mu.Lock()
		f.count["answers"]++
		f.last = string(marshal(m))
		f.mu.Unlock()
		return
	}
	if f.act(m.Method, m) || len(m.ID) == 0 {
		return
	}
	switch m.Method {
	case "server/discover":
		if f.act("modern", m) {
			f.reply(m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			return
		}
		f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID))
	case "initialize":
		changes := slices.ContainsFunc(f.lines, func(line string) bool { return strings.Contains(line, "list_changed") }) // a gateway waits for them
		f.reply(m, fmt.Sprintf(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":%t}},"serverInfo":{"name":"fake","version":"1"}}`, changes))
	case "tools/list":
		f.reply(m, `{"tools":[{"name":"say","description":"Says it.","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		f.reply(m, `{"content":[{"type":"text","text":"said"}]}`)
	default:
		f.reply(m, `{}`)
	}
}

func (f *fake) send(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintln(f.out, text)
}

func (f *fake) reply(m message, result string) {
	f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

// act does what the script says of a method, and reports whether it says anything. "once" before an action does it the first time only, and
// "later" every other time.
func (f *fake) act(method string, m message) (said bool) {
	for i, line := range f.lines {
		name, action, _ := strings.Cut(line, " ")
		if name != method {
			continue
		}
		f.mu.Lock()
		f.count[strconv.Itoa(i)]++
		times := f.count[strconv.Itoa(i)]
		f.mu.Unlock()
		if rest, ok := strings.CutPrefix(action, "once "); ok {
			if action = rest; times > 1 {
				continue
			}
		} else if rest, ok := strings.CutPrefix(action, "later "); ok {
			if action = rest; times == 1 {
				continue
			}
		}
		said = true
		f.do(action, m)
	}
	return said
}

func (f *fake) do(action string, m message) {
	verb, rest, _ := strings.Cut(action, " ")
	times, arg, ok := strings.Cut(rest, " ")
	n, err := strconv.Atoi(times)
	if !ok && err != nil || err != nil {
		n, arg = 1, rest
	}
	arg = strings.ReplaceAll(arg, "$ID", string(m.ID))
	switch verb {
	case "reply":
		f.reply(m, arg)
	case "print":
		for range n {
			f.send(arg)
		}
	case "half":
		f.mu.Lock()
		fmt.Fprint(f.out, arg)
		f.mu.Unlock()
	case "long":
		f.mu.Lock()
		f.out.Write(bytes.Repeat([]byte("x"), n<<20))
		f.mu.Unlock()
	case "stderr":
		for range n {
			fmt.Fprintln(os.Stderr, arg)
		}
	case "die":
		os.Exit(3)
	case "stay":
		time.Sleep(time.Hour)
	case "fork":
		_ = exec.Command("sleep", "3600").Start()
	case "echo": // what came with the request
		f.reply(m, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, marshal(string(m.Params))))
	case "answered": // what came as the last answer
		for range 500 {
			f.mu.Lock()
			last := f.last
			f.mu.Unlock()
			if last != "" {
				f.reply(m, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, marshal(last)))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	case "silent":
	case "yes":
	case "count": // the answers, once so many have come
		count := 0
		for range 1000 {
			f.mu.Lock()
			count = f.count["answers"]
			f.mu.Unlock()
			if count >= n {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		f.reply(m, fmt.Sprintf(`{"content":[{"type":"text","text":"%d answers"}]}`, count))
	default:
		panic("no such action: " + action)
	}
}

// ServeHTTP makes the fake a server over HTTP: one message a request, answered with all that the script prints.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.answered(w, r) {
		return
	}
	var m message
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var out bytes.Buffer
	one := &fake{lines: f.lines, out: &out, count: f.count}
	one.serve(m)
	if len(m.ID) == 0 || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) == 1 && lines[0] != "" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, lines[0])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, line := range lines {
		fmt.Fprintf(w, "data: %s\n\n", line)
	}
}

// answered does what the script says of HTTP: "http status 401", "http redirect URL", "http header 100000".
func (f *fake) answered(w http.ResponseWriter, r *http.Request) bool {
	for _, line := range f.lines {
		fields := strings.Fields(line)
		if fields[0] != "http" {
			continue
		}
		switch fields[1] {
		case "status":
			code, _ := strconv.Atoi(fields[2])
			w.WriteHeader(code)
			return true
		case "redirect":
			http.Redirect(w, r, fields[2], http.StatusTemporaryRedirect)
			return true
		case "header":
			n, _ := strconv.Atoi(fields[2])
			w.Header().Set("X-Huge", strings.Repeat("x", n))
		case "slow": // x
			f.mu.Lock()
			f.count["slow"]++
			f.mu.Unlock()
		}
	}
	return false
}
