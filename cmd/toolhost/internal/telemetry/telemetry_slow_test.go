//go:build slow

package telemetry

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A collector that takes connections and never answers fails no call and holds no end for longer than it may.
func TestCollectorThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
	var ended time.Time
	log := observed(t, func(h *mcpserver.Host) {
		for range 50 {
			if r := call(h, "Read", `{"file_path":"secret-name.txt"}`, audit.Origin{}); r.IsError {
				t.Errorf("a call failed: %s", r.Text)
			}
		}
		ended = time.Now()
	})
	if took := time.Since(ended); took > 5*FlushTime { // generous: it passes only when nothing bounds the wait
		t.Errorf("the end took %v", took)
	}
	if !strings.Contains(log.String(), "did not answer") && !strings.Contains(log.String(), "could not be sent") {
		t.Errorf("nobody was told: %s", log)
	}
}
