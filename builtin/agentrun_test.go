package builtin

import (
	"context"
	"os"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/agent"
	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// TestAgentProgress has a client that reads no progress while it asks for the state of the agent.
func TestAgentProgress(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	parse, err := agent.NewParser("claude")
	if err != nil {
		t.Fatal(err)
	}
	told, goOn := make(chan string), make(chan struct{})
	r := &agentRun{knownAgent: &knownAgent{}, parse: parse, front: context.Background(), out: &shell.Collector{}}
	r.env = &Env{Client: Client{Progress: func(call string) { told <- call; <-goOn }}}
	r.env.Agents.MaxTurns, r.env.Agents.MaxTokens = 10, 1000
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.read(out, r.line)
	}()
	in.WriteString(`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{"file_path":"a.go"}}]}}` + "\n")
	if call := <-told; call != "Read(a.go)" {
		t.Errorf("told %q, expected Read(a.go)", call)
	}
	if !r.mu.TryLock() {
		t.Fatal("the lock is held while the client is told")
	}
	r.mu.Unlock()
	close(goOn)
	in.Close()
	<-read
}
