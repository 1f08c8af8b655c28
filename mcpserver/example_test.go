package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver"
)

// Count is the input of a tool that the program adds: its fields are the arguments.
type Count struct {
	Text string `json:"text" jsonschema:"the text whose words are counted"`
}

// A program serves the tools of the host and one of its own on its standard input and output.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	count, err := builtin.Define(builtin.Tool[Count]{
		Name:       "Count",
		Doc:        "Counts the words of a text.",
		Hints:      builtin.Hints{ReadOnly: true, Closed: true},
		Permission: guard.ToRead,
		Plan: func(_ context.Context, _ *builtin.Env, in Count) (builtin.Plan, error) {
			return builtin.Plan{
				Intent: guard.Intent{Effects: []guard.Effect{guard.Compute{}}},
				Run: func(context.Context) (builtin.Result, error) {
					return builtin.Result{Text: fmt.Sprintf("%d words", len(strings.Fields(in.Text)))}, nil
				},
			}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	host, err := mcpserver.Open(mcpserver.Config{Roots: []string{dir}, StateDir: dir + "/state",
		CustomTools: []*builtin.Def{count}})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()
	server, err := mcpserver.NewServer(host)
	if err != nil {
		log.Fatal(err)
	}

	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Count","arguments":{"text":"one two three"}}}` + "\n")
	var out bytes.Buffer
	if err := server.ServeStdio(context.Background(), in, &out, nil); err != nil { // os.Stdin and os.Stdout in a program
		log.Fatal(err)
	}
	var answer struct {
		Result struct {
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Result.Content[0].Text)
	// Output: 3 words
}
