// Command fakeagent is an agent without a model: its prompt is the list of what it does, a JSON object each line. It
// prints what Claude Code prints, and calls the tools of the host at the socket that its first argument names.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A step is one thing to do; the first member that is set counts.
type step struct {
	Tool  string         `json:"tool"` // called with Args
	Args  map[string]any `json:"args"`
	List  bool           `json:"list"`  // print the names of the tools
	Shell string         `json:"shell"` // by its own shell
	Say   string         `json:"say"`
	Raw   string         `json:"raw"`   // printed as it is
	Turns int            `json:"turns"` // so many answers
	Fork  string         `json:"fork"`  // leave a daemon with this argument
	Flood int            `json:"flood"` // MiB
	Sleep bool           `json:"sleep"`
	Crash bool           `json:"crash"`
	Exit  *int           `json:"exit"` // at once, without an answer
	Fail  string         `json:"fail"` // the answer is an error
}

var (
	answer []string
	host   *bufio.ReadWriter
	ids    int
)

func main() {
	input, _ := io.ReadAll(os.Stdin)
	emit(map[string]any{"type": "system", "subtype": "init", "session_id": "session-1"})
	answer = append(answer, "args: "+strings.Join(os.Args[2:], " "))
	for line := range strings.Lines(string(input)) {
		var s step
		if json.Unmarshal([]byte(line), &s) != nil {
			continue // the prompt of a definition
		}
		s.do()
	}
	result("success", strings.Join(answer, "\n"))
}

func result(how, text string) {
	emit(map[string]any{"type": "result", "subtype": how, "is_error": how != "success", "session_id": "session-1", "result": text,
		"usage": map[string]int{"input_tokens": 100, "output_tokens": 11}})
}

func (s step) do() {
	ids++
	switch {
	case s.Tool != "":
		emit(message(map[string]any{"type": "tool_use", "name": "mcp__toolhost__" + s.Tool, "input": s.Args}))
		answer = append(answer, call(s.Tool, s.Args))
	case s.List:
		answer = append(answer, "tools: "+strings.Join(list(), " "))
	case s.Shell != "":
		out, err := exec.Command("/bin/sh", "-c", s.Shell).CombinedOutput()
		answer = append(answer, fmt.Sprintf("%s%v", out, err))
	case s.Say != "":
		emit(message(map[string]any{"type": "text", "text": s.Say}))
		answer = append(answer, s.Say)
	case s.Raw != "":
		fmt.Println(s.Raw)
	case s.Turns > 0:
		for range s.Turns {
			ids++
			emit(message(map[string]any{"type": "text", "text": "again"}))
		}
		time.Sleep(time.Hour)
	case s.Fork != "":
		for range 3 {
			cmd := exec.Command("setsid", "sleep", s.Fork)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Stdout = os.Stdout // a daemon that holds the pipe
			_ = cmd.Start()
		}
	case s.Flood > 0:
		block := strings.Repeat(strings.Repeat("x", 1023)+"\n", 1024)
		for range s.Flood {
			fmt.Print(block)
		}
	case s.Sleep:
		time.Sleep(time.Hour)
	case s.Crash:
		panic("crashed")
	case s.Exit != nil:
		os.Exit(*s.Exit)
	case s.Fail != "":
		result("error", s.Fail)
		os.Exit(1)
	}
}

func message(part map[string]any) map[string]any {
	return map[string]any{"type": "assistant", "session_id": "session-1", "message": map[string]any{"id": fmt.Sprint("m", ids), "content": []any{part},
		"usage": map[string]int{"input_tokens": 10, "output_tokens": 1}}}
}

func emit(v any) {
	text, _ := json.Marshal(v)
	fmt.Println(string(text))
}

// ask sends a request and returns its result.
func ask(method string, params map[string]any) map[string]any {
	if host == nil {
		conn, err := net.Dial("unix", os.Args[1])
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		host = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
		ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "fake", "version": "1"}})
	}
	ids++
	id := ids
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	fmt.Fprintf(host, "%s\n", text)
	host.Flush()
	for {
		line, err := host.ReadString('\n')
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		var m map[string]any
		_ = json.Unmarshal([]byte(line), &m)
		if m["method"] == "elicitation/create" {
			answer = append(answer, "BREACH: the agent was asked")
		}
		if m["id"] == float64(id) && m["method"] == nil {
			if r, ok := m["result"].(map[string]any); ok {
				return r
			}
			return m
		}
	}
}

func list() (names []string) {
	tools, _ := ask("tools/list", map[string]any{})["tools"].([]any)
	for _, t := range tools {
		names = append(names, fmt.Sprint(t.(map[string]any)["name"]))
	}
	return names
}

func call(tool string, args map[string]any) string {
	r := ask("tools/call", map[string]any{"name": tool, "arguments": args})
	content, _ := r["content"].([]any)
	if len(content) == 0 {
		text, _ := json.Marshal(r)
		return string(text)
	}
	text := fmt.Sprint(content[0].(map[string]any)["text"])
	if r["isError"] == true {
		return "refused: " + text
	}
	return text
}
