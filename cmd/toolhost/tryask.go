package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/console"
	"github.com/toolhost/toolhost/mcpserver"
)

// fates maps the console's labels to outcomes.
var fates = map[string]string{"Apply": applyThem, "Keep as branch": keepThem, "Discard": discardThem}

// ask asks at the terminal and at the console concurrently. The first answer counts.
func (t *trying) ask(ctx context.Context, w io.Writer, diff string) (fate string, err error) {
	t.state.console.on = true
	defer func() { t.state.console = consoleFlags{} }()
	cfg, err := t.state.config([]string{t.worktree.Source}, false)
	if err != nil {
		return "", err
	}
	err = open(cfg, func(host *mcpserver.Host) error {
		return t.state.sidecars(ctx, host, stdioKind, func() {}, func() error {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			answers := make(chan string, 2)
			if host.Operator().MayAnswer() == nil {
				go t.askConsole(ctx, w, t.state.console.board, diff, answers)
			}
			go func() { answers <- askFate(w, os.Stdin) }() // blocks until the process exits if the console answers first
			fate = <-answers
			return nil
		})
	})
	return fate, err
}

// askConsole forwards the answer that is given at the console.
func (t *trying) askConsole(ctx context.Context, w io.Writer, board *console.Console, diff string,
	answers chan<- string) {
	form, err := json.Marshal(map[string]any{
		"message": fmt.Sprintf("%s has changed a copy of %s", t.client, t.worktree.Source), "diff": diff,
		"requestedSchema": map[string]any{"properties": map[string]any{"answer1": map[string]any{"enum": []string{"Apply", "Keep as branch", "Discard"}}}},
	})
	if err != nil {
		return
	}
	q := mcpserver.OperatorQuestion{Principal: mcpserver.LocalPrincipal, Scope: t.worktree.Source, Tool: "try",
		Question: &mcpserver.Question{
			ID: strings.TrimPrefix(t.worktree.Name, "try-"), Gist: "try: " + t.client, Form: form,
		}}
	var answer struct{ Content struct{ Answer1 string } }
	if json.Unmarshal([]byte(board.Ask(ctx, q).Form), &answer) == nil && fates[answer.Content.Answer1] != "" {
		fmt.Fprintf(w, "\ntoolhost try: %s, says the console\n", answer.Content.Answer1)
		answers <- fates[answer.Content.Answer1]
	}
}
