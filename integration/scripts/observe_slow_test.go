//go:build slow

package scripts

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// A collector that cannot be reached is told of, and changes nothing else.
func TestTracesThatCannotBeSent(t *testing.T) {
	home := host.DoctorHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
	defer cancel()
	h, err := host.StartHost(ctx, host.Settings[0], filepath.Join(home, "work"),
		append(host.CleanEnv(home), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.Call(ctx, "Glob", `{"pattern":"*"}`); err != nil || r.IsError {
		t.Errorf("a call failed: %v, %v", r, err)
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(h.Stderr.String(), "could not be sent") {
		t.Errorf("nobody was told: %s", h.Stderr)
	}
}
