package mcpserver

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"toolhost/mcpserver/audit"
)

// A burst holds back the answers to brief calls that came in one behind the other. Their records are written in one piece, and then
// they: an answer never goes before its record. Nobody waits for what is still to come; the reader settles before it does, and when
// calls take long, see [stdioReader].
type burst struct {
	conn *stdioConn

	mu   sync.Mutex
	held []heldAnswer
	size int // of their texts, about, in bytes
}

// A heldAnswer is the response to a call that has ended.
type heldAnswer struct {
	id       string
	call     *stdioCall
	response mcp.JSONRPCMessage
	record   *audit.Record // to be written first; nil if it was
}

// Limits of what is held.
const (
	maxHeld      = 16
	maxHeldBytes = 48 << 10 // with what JSON adds to it, it fits into a pipe
)

// hold keeps an answer until the next [burst.settle], which may be at once.
func (b *burst) hold(a heldAnswer) {
	b.mu.Lock()
	b.held = append(b.held, a)
	if a.record != nil {
		b.size += a.record.Bytes
	}
	full := len(b.held) >= maxHeld || b.size >= maxHeldBytes
	b.mu.Unlock()
	if full {
		b.settle()
	}
}

// holds reports whether anything is held.
func (b *burst) holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held) > 0
}

// settle sends what is held.
func (b *burst) settle() {
	b.mu.Lock()
	held := b.held
	b.held, b.size = nil, 0
	b.mu.Unlock()
	if len(held) == 0 {
		return
	}
	var records []audit.Record
	for _, a := range held {
		if a.record != nil {
			records = append(records, *a.record)
		}
	}
	note := ""
	if len(records) > 0 {
		note = b.conn.server.host.record(records...)
	}
	for _, a := range held {
		if a.record != nil && note != "" {
			a.addNote(note)
		}
	}
	b.conn.answer(held...)
}

// addNote puts a note behind the text of an answer.
func (a heldAnswer) addNote(note string) {
	answer, ok := a.response.(plainAnswer)
	if !ok || len(answer.result.Content) == 0 {
		return
	}
	if text, ok := answer.result.Content[0].(mcp.TextContent); ok {
		text.Text += note
		answer.result.Content[0] = text
	}
}
