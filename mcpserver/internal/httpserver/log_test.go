package httpserver

import (
	"log/slog"
	"strings"
	"testing"
)

// Mistakes of clients are logged at debug level, panics as errors.
func TestDebugLog(t *testing.T) {
	var log strings.Builder
	l := debugLog(slog.New(slog.NewTextHandler(&log, nil))).With("a", 1).WithGroup("g")
	l.Error("a client does not know its own session", "b", 2)
	if log.Len() > 0 {
		t.Errorf("an error of a client was logged: %s", log.String())
	}
	l.Error("panic in a handler", "b", 2)
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "a=1 g.b=2") {
		t.Errorf("a panic was logged as %s", got)
	}
}
