package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// maxHeld bounds how many messages are held.
const maxHeld = 200

// A heldLog is a handler that holds messages below errors while a client has the terminal. Otherwise they would
// appear in the client's screen.
type heldLog struct {
	slog.Handler
	held *heldMessages
}

// heldMessages are the messages of a handler and of all handlers derived from it.
type heldMessages struct {
	mu      sync.Mutex
	holding io.Writer // the terminal, in raw mode; nil: nothing is held
	print   []func() error
	more    int // messages that were dropped
}

func (h heldLog) Handle(ctx context.Context, r slog.Record) error {
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	switch {
	case h.held.holding == nil:
		return h.Handler.Handle(ctx, r)
	case r.Level >= slog.LevelError:
		fmt.Fprint(h.held.holding, "\r") // in raw mode a line feed alone does not begin a line
		defer fmt.Fprint(h.held.holding, "\r")
		return h.Handler.Handle(ctx, r)
	case len(h.held.print) == maxHeld:
		h.held.more++
	default:
		r = r.Clone()
		h.held.print = append(h.held.print, func() error { return h.Handler.Handle(ctx, r) })
	}
	return nil
}

func (h heldLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return heldLog{h.Handler.WithAttrs(attrs), h.held}
}

func (h heldLog) WithGroup(name string) slog.Handler {
	return heldLog{h.Handler.WithGroup(name), h.held}
}

// hold starts to hold messages, because a client gets the terminal.
func (h *heldMessages) hold(terminal io.Writer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding = terminal
}

// release prints the held messages, logs how many were dropped, and stops holding.
func (h *heldMessages) release(log *slog.Logger) {
	h.mu.Lock()
	print, more := h.print, h.more
	h.holding, h.print, h.more = nil, nil, 0
	h.mu.Unlock()
	for _, message := range print {
		_ = message() // lost if stderr is closed
	}
	if more > 0 {
		log.Warn("more messages came while the client had the terminal, which were not kept", "messages", more)
	}
}
