package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/semconv/v1.40.0/mcpconv"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { http.DefaultClient.CloseIdleConnections(); os.Exit(code) }))
}

// A collector keeps what it is sent.
type collector struct {
	url string

	mu      sync.Mutex
	spans   []*spanpb.Span
	service string
	metrics []*metricspb.MetricsData
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.take(r.URL.Path, body)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// take keeps a message. A request of a collector's service has the fields of these types, whose package needs no gRPC.
func (c *collector) take(path string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if path == "/v1/metrics" {
		var m metricspb.MetricsData
		c.metrics = append(c.metrics, &m)
		return proto.Unmarshal(body, &m)
	}
	var m spanpb.TracesData
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	for _, rs := range m.ResourceSpans {
		c.service = attributes(rs.Resource.Attributes)["service.name"]
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	return nil
}

func attributes(all []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range all {
		if s, ok := kv.Value.Value.(*commonpb.AnyValue_StringValue); ok {
			m[kv.Key] = s.StringValue
		} else {
			m[kv.Key] = kv.Value.String()
		}
	}
	return m
}

// observed runs calls in a host that is watched as the environment says, and ends it.
func observed(t *testing.T, do func(h *mcpserver.Host)) *lockedBuffer {
	t.Helper()
	log := &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	watch, err := Start(t.Context(), Config{Version: "v1", Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "secret-name.txt"), []byte("secret content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := mcpserver.Config{Roots: []string{root}, RootsNamed: true, StateDir: t.TempDir(),
		Deny: []string{"Read(denied.txt)"}}
	if watch != nil {
		cfg.Observers = []audit.Observer{watch}
	}
	h, err := mcpserver.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	do(h)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := watch.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		logger.Warn(err.Error())
	}
	return log
}

// A lockedBuffer is written to by a host and what watches it, also after its end.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func call(h *mcpserver.Host, tool, args string, from audit.Origin) mcpserver.Reply {
	return h.Call(context.Background(), h.AdmitNamed(""),
		mcpserver.Request{Tool: tool, Args: json.RawMessage(args), Origin: from})
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func TestSpans(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
	t.Setenv("OTEL_SERVICE_NAME", "my-tools")
	observed(t, func(h *mcpserver.Host) {
		from := audit.Origin{Transport: "http", Protocol: "2025-06-18", Session: "abc", TraceParent: "00-" + traceID +
			"-" + spanID + "-01", TraceState: "v=1"}
		call(h, "Read", `{"file_path":"secret-name.txt"}`, from)
		call(h, "Read", `{"file_path":"denied.txt"}`, audit.Origin{Transport: "stdio"})
		call(h, "made up by the caller", `{}`, audit.Origin{})
		call(h, "Read", `{"file_path":"secret-name.txt"}`, audit.Origin{TraceParent: "00-" + traceID + "-" + spanID + "-00"}) // not sampled
	})
	if len(c.spans) != 3 || c.service != "my-tools" {
		t.Fatalf("%d spans of %q, want 3 of my-tools", len(c.spans), c.service)
	}
	read, denied, unknown := c.spans[0], c.spans[1], c.spans[2]
	if read.Name != "tools/call Read" || read.Kind != spanpb.Span_SPAN_KIND_SERVER {
		t.Errorf("the span is %s %s", read.Name, read.Kind)
	}
	if hex.EncodeToString(read.TraceId) != traceID || hex.EncodeToString(read.ParentSpanId) != spanID ||
		read.TraceState != "v=1" {
		t.Errorf("the span is %x below %x, state %q", read.TraceId, read.ParentSpanId, read.TraceState)
	}
	want := map[string]string{
		"mcp.method.name": "tools/call", "gen_ai.tool.name": "Read", "gen_ai.operation.name": "execute_tool", "mcp.session.id": "abc",
		"mcp.protocol.version": "2025-06-18", "network.transport": "tcp", "toolhost.outcome": "ok", "toolhost.verdict": "allow",
	}
	got := attributes(read.Attributes)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	var events []string
	for _, e := range read.Events {
		events = append(events, e.Name)
	}
	if !slices.Equal(events, []string{"toolhost.turn", "toolhost.judgement", "toolhost.run", "toolhost.fit"}) {
		t.Errorf("events %q", events)
	}
	if got := attributes(denied.Attributes); got["error.type"] != "tool_error" ||
		got["toolhost.outcome"] != "refused" || denied.Status.Code != spanpb.Status_STATUS_CODE_ERROR {
		t.Errorf("a denied call is told as %v, %v", got, denied.Status)
	}
	if unknown.Name != "tools/call _OTHER" {
		t.Errorf("an unknown tool is named %q", unknown.Name)
	}
	for _, s := range c.spans {
		if text := s.String(); strings.Contains(text, "secret") || strings.Contains(text, "denied.txt") ||
			strings.Contains(text, "made up") {
			t.Errorf("a span tells what it must not: %s", text)
		}
	}
}

func TestDetailsAreToldWhenAskedFor(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.url+"/v1/traces")
	t.Setenv(variableDetails, "true")
	observed(t, func(h *mcpserver.Host) { call(h, "Read", `{"file_path":"secret-name.txt"}`, audit.Origin{}) })
	if len(c.spans) != 1 || !strings.Contains(attributes(c.spans[0].Attributes)["toolhost.reads"], "secret-name.txt") {
		t.Fatalf("spans %v", c.spans)
	}
	if strings.Contains(c.spans[0].String(), "secret content") {
		t.Error("the content of a file was sent")
	}
	if len(c.metrics) != 0 {
		t.Error("metrics were sent, which were not asked for")
	}
}

func TestDuration(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", c.url+"/v1/metrics")
	observed(t, func(h *mcpserver.Host) {
		for range 3 {
			call(h, "Read", `{"file_path":"secret-name.txt"}`, audit.Origin{Transport: "stdio"})
		}
	})
	if len(c.metrics) != 1 || len(c.spans) != 0 {
		t.Fatalf("%d messages of metrics and %d spans, want 1 and 0", len(c.metrics), len(c.spans))
	}
	m := c.metrics[0].ResourceMetrics[0].ScopeMetrics[0].Metrics[0]
	p := m.GetHistogram().GetDataPoints()[0]
	if m.Name != "mcp.server.operation.duration" || m.Unit != "s" || p.Count != 3 ||
		!slices.Equal(p.ExplicitBounds, buckets) {
		t.Errorf("the metric is %v", m)
	}
	if got := attributes(p.Attributes); got["gen_ai.tool.name"] != "Read" || got["mcp.method.name"] != "tools/call" ||
		got["network.transport"] != "pipe" {
		t.Errorf("its attributes are %v", got)
	}
}

func TestConventions(t *testing.T) {
	duration, err := mcpconv.NewServerOperationDuration(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, got, want string }{
		{"schema", schemaURL, semconv.SchemaURL},
		{"name", durationName, duration.Name()},
		{"description", durationText, duration.Description()},
		{"unit", "s", duration.Unit()},
		{"method", method, string(mcpconv.MethodNameToolsCall)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %q, the conventions say %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestNothingIsStartedUnasked(t *testing.T) {
	for _, env := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "prometheus"},
	} {
		for name, value := range env {
			t.Setenv(name, value)
		}
		if got, err := Start(t.Context(), Config{Log: slog.New(slog.DiscardHandler)}); got != nil || err != nil {
			t.Errorf("%v: started %v, %v", env, got, err)
		}
	}
}

func TestWrongVariablesAreTold(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if got, err := Start(t.Context(), Config{Log: slog.New(slog.DiscardHandler)}); got != nil || err == nil ||
		!strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("started %v, %v", got, err)
	}
}

func TestQuiet(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	q := &quiet{log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }}
	for range 5 {
		q.Handle(io.EOF)
	}
	now = now.Add(2 * quietTime)
	q.Handle(io.EOF)
	if n := strings.Count(log.String(), "EOF"); n != 2 {
		t.Errorf("told %d times, want 2:\n%s", n, log.String())
	}
}

// BenchmarkCall is what one call pays for being traced and measured, while the collector is down.
func BenchmarkCall(b *testing.B) {
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
	t, err := Start(b.Context(), Config{Version: "v1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = t.Shutdown(context.Background()) }()
	info := audit.Call{Tool: "Read", Served: true, Arrived: time.Now(), Scope: "process:0123456789ab",
		Origin: audit.Origin{Transport: "stdio", Protocol: "2025-06-18"}}
	record := audit.Record{Tool: "Read", Verdict: "allow", Reads: []string{"/a"}}
	for b.Loop() {
		ctx := t.CallBegan(context.Background(), info)
		for _, s := range []audit.Stage{audit.AtTurn, audit.AtJudgement, audit.AtRun, audit.AtFit} {
			t.CallReached(ctx, info, s)
		}
		t.CallPlanned(ctx, info, record)
		t.CallEnded(ctx, info, record, builtin.Result{})
	}
}

func TestHideSecrets(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=hidden", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:hidden@collector.example:4318/x", "https://collector.example:4318/x"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "me:hidden@collector.example", ""},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://collector.example/v1/metrics", "http://collector.example/v1/metrics"},
	} {
		t.Setenv(tt.name, tt.value)
		HideSecrets()
		if got := os.Getenv(tt.name); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
