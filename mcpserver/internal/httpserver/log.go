package httpserver

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// quietLog turns the lines of net/http into debug messages: broken connections are everyday business.
func quietLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }

// debugLog turns the lines of the library into debug messages: what clients do wrong is an error to it, so that any
// client could fill the log. A panic stays what it is.
func debugLog(l *slog.Logger) *slog.Logger { return slog.New(debugHandler{l.Handler()}) }

type debugHandler struct{ slog.Handler }

// Enabled implements slog.Handler: only the message tells.
func (h debugHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h debugHandler) Handle(ctx context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "panic") {
		r.Level = slog.LevelDebug
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h debugHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return debugHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h debugHandler) WithGroup(name string) slog.Handler {
	return debugHandler{h.Handler.WithGroup(name)}
}
