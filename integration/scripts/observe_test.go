package scripts

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/toolhost/toolhost/integration/host"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A traceCollector keeps the spans that hosts send.
type traceCollector struct {
	url   string
	mu    sync.Mutex
	spans []*tracepb.Span
	key   string // the header of that name
}

func startTraceCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var m tracepb.TracesData // encoded as an ExportTraceServiceRequest, whose package needs gRPC
		if err == nil {
			err = proto.Unmarshal(body, &m)
		}
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.key = r.Header.Get("key")
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// attribute is a text among the attributes of a span.
func attribute(s *tracepb.Span, name string) string {
	for _, kv := range s.Attributes {
		if kv.Key == name {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

// A host continues the trace that its client began, and sends its spans before it ends.
func TestTraces(t *testing.T) {
	for _, s := range host.Settings {
		t.Run(s.String(), func(t *testing.T) {
			collector := startTraceCollector(t)
			home := host.DoctorHome(t)
			work := filepath.Join(home, "work")
			ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
			defer cancel()
			h, err := host.StartHost(ctx, s, work, append(host.CleanEnv(home),
				"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+collector.url+"/v1/traces", "OTEL_EXPORTER_OTLP_HEADERS=key=collector-key"))
			if err != nil {
				t.Fatal(err)
			}
			h.Meta = map[string]any{"traceparent": "00-" + traceID + "-" + spanID + "-01"}
			if r, err := h.Call(ctx, "Bash", `{"command":"env"}`); err != nil ||
				strings.Contains(r.Text(), "collector-key") {
				t.Errorf("a command sees the key of the collector: %v, %v", r, err)
			}
			if err := h.Stop(); err != nil {
				t.Error(err)
			}
			if len(collector.spans) != 1 {
				t.Fatalf("%d spans, want 1\n%s", len(collector.spans), h.Stderr)
			}
			if collector.key != "collector-key" {
				t.Errorf("the collector was sent the key %q", collector.key)
			}
			span := collector.spans[0]
			if hex.EncodeToString(span.TraceId) != traceID || hex.EncodeToString(span.ParentSpanId) != spanID {
				t.Errorf("the span is %x below %x", span.TraceId, span.ParentSpanId)
			}
			if got := attribute(span, "mcp.protocol.version"); got != string(s.Era) {
				t.Errorf("the protocol is told as %q", got)
			}
			if want := map[string]string{"stdio": "pipe", "http": "tcp"}[s.Transport]; attribute(span,
				"network.transport") != want {
				t.Errorf("the transport is told as %q, want %q", attribute(span, "network.transport"), want)
			}
			if legacyWeb := s.String() == "http-2025-11-25"; legacyWeb != (attribute(span, "mcp.session.id") != "") {
				t.Errorf("the session is told as %q", attribute(span, "mcp.session.id"))
			}
		})
	}
}

// The trace may also come in the header of a request.
func TestTraceInHeader(t *testing.T) {
	collector := startTraceCollector(t)
	home := host.DoctorHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
	defer cancel()
	h, err := host.StartHost(ctx, host.HTTPModern, filepath.Join(home, "work"),
		append(host.CleanEnv(home), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.url, "OTEL_METRICS_EXPORTER=none"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Glob","arguments":{"pattern":"*"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + h.Token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "Glob",
		"traceparent": "00-" + traceID + "-" + spanID + "-01",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s: %s", resp.Status, answer)
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
	if len(collector.spans) != 1 || hex.EncodeToString(collector.spans[0].TraceId) != traceID {
		t.Errorf("spans %v", collector.spans)
	}
}

func TestMetrics(t *testing.T) {
	home := host.DoctorHome(t)
	ctx, cancel := context.WithTimeout(t.Context(), host.Patience)
	defer cancel()
	h, err := host.StartHost(ctx, host.Setting{Transport: "http", Era: "2025-11-25"}, filepath.Join(home, "work"),
		host.CleanEnv(home), "--metrics", ":0", "--log-format", "json")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := h.Call(ctx, "Glob", `{"pattern":"*"}`); err != nil {
			t.Error(err)
		}
	}
	refused, err := http.Post(h.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	refused.Body.Close()
	page := h.Metrics(t)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) (sum float64) {
		for _, m := range all[name].GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	for name, want := range map[string]float64{
		"toolhost_calls_total": 3, "toolhost_sessions": 1, "toolhost_auth_failures_total": 1, "toolhost_calls_in_flight": 0, "toolhost_sandbox": 1,
	} {
		if got := value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := h.Stop(); err != nil {
		t.Error(err)
	}
}

// What a flag says that cannot be is refused with the exit code of usage, before anything is served.
func TestFlagsOfObservation(t *testing.T) {
	home := host.DoctorHome(t)
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--log-level", "loud"}, "debug, info, warn or error"},
		{[]string{"--log-format", "xml"}, "text or json"},
		{[]string{"--audit-max-size", "lots"}, "64MiB"},
		{[]string{"--audit-max-size", "1"}, "64KiB"},
		{[]string{"--audit-keep", "0"}, "at least one"},
	} {
		out, code := host.RunCommand(t, home, append([]string{"tools"}, tt.flags...)...)
		if code != 2 || !strings.Contains(out, tt.want) {
			t.Errorf("%q: exit code %d, %s", tt.flags, code, out)
		}
	}
	out, code := host.RunCommand(t, home, "stdio", "--metrics", "0.0.0.0:0")
	if code != 2 || !strings.Contains(out, "--metrics-token-file") {
		t.Errorf("metrics for everybody: exit code %d, %s", code, fmt.Sprint(out))
	}
}
