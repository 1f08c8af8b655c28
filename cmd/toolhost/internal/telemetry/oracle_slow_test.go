//go:build slow

package telemetry

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// collect starts a collector that keeps the last message it was sent.
func collect(t *testing.T) (url string, last func() (body []byte, header http.Header)) {
	t.Helper()
	var body []byte
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			in = z
		}
		body, _ = io.ReadAll(in)
		header = r.Header
	}))
	t.Cleanup(server.Close)
	return server.URL, func() ([]byte, http.Header) { return body, header }
}

var described = resource.NewWithAttributes("https://example.org/schema", attribute.String("service.name", "toolhost"),
	attribute.Int("n", -3))

// everyKind has attributes of the kinds that are recorded.
var everyKind = []attribute.KeyValue{
	attribute.String("s", "text"), attribute.String("empty", ""), attribute.Int64("i", -1), attribute.Int64("zero", 0),
	attribute.StringSlice("l", []string{"a", ""}),
}

// The exporters of the OpenTelemetry project are the reference.
func TestSpansAreSentAsTheReferenceDoes(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithResource(described))
	tracer := provider.Tracer("one", trace.WithInstrumentationVersion("v1"),
		trace.WithSchemaURL("https://example.org/scope"),
		trace.WithInstrumentationAttributes(attribute.String("k", "v")))
	state, _ := trace.ParseTraceState("vendor=1")
	remote := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
		TraceState: state, Remote: true,
	}))
	ctx, parent := tracer.Start(remote, "tools/call Read", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(everyKind...))
	_, child := tracer.Start(ctx, "", trace.WithTimestamp(time.Unix(5, 7)), trace.WithSpanKind(trace.SpanKindServer))
	child.End()
	parent.AddEvent("turn", trace.WithAttributes(everyKind...))
	parent.AddEvent("run")
	parent.SetStatus(codes.Error, "why")
	parent.End()

	url, last := collect(t)
	spans := kept.GetSpans().Snapshots()
	reference, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(url+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	if err := reference.ExportSpans(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	var want, got tracepb.ExportTraceServiceRequest
	unmarshal(t, last, &want)
	if err := newSpanExporter(endpoint{URL: url + "/v1/traces", Timeout: time.Minute}).ExportSpans(t.Context(),
		spans); err != nil {
		t.Fatal(err)
	}
	unmarshal(t, last, &got)
	if diff := cmp.Diff(&want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("-reference +sent:\n%s", diff)
	}
	if n := len(got.ResourceSpans[0].ScopeSpans[0].Spans); n != 2 {
		t.Errorf("%d spans were compared, want 2", n)
	}
}

func TestMetricsAreSentAsTheReferenceDoes(t *testing.T) {
	for _, delta := range []bool{false, true} {
		name := "cumulative"
		if delta {
			name = "delta"
		}
		t.Run(name, func(t *testing.T) {
			url, last := collect(t)
			ours := newMetricExporter(endpoint{URL: url + "/v1/metrics", Timeout: time.Minute, Delta: delta,
				Gzip: true})
			rm := measured(t, ours)
			reference, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(url+"/v1/metrics"))
			if err != nil {
				t.Fatal(err)
			}
			if err := reference.Export(t.Context(), rm); err != nil {
				t.Fatal(err)
			}
			var want, got metricspb.ExportMetricsServiceRequest
			unmarshal(t, last, &want)
			if err := ours.Export(t.Context(), rm); err != nil {
				t.Fatal(err)
			}
			unmarshal(t, last, &got)
			if diff := cmp.Diff(&want, &got, protocmp.Transform()); diff != "" {
				t.Errorf("-reference +sent:\n%s", diff)
			}
			if h := got.ResourceMetrics[0].ScopeMetrics[0].Metrics[0].GetHistogram(); h == nil ||
				len(h.DataPoints[0].Exemplars) == 0 {
				t.Errorf("no exemplar was compared: %v", h)
			}
		})
	}
}

// measured returns what a histogram has recorded.
func measured(t *testing.T, e *metricExporter) *metricdata.ResourceMetrics {
	t.Helper()
	reader := sdkmetric.NewManualReader(sdkmetric.WithTemporalitySelector(e.Temporality))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(described))
	meter := provider.Meter("m", metric.WithInstrumentationVersion("v1"),
		metric.WithSchemaURL("https://example.org/scope"))
	sampled := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	with := metric.WithAttributes(everyKind...)
	seconds, err := meter.Float64Histogram("seconds", metric.WithUnit("s"), metric.WithDescription("how long"),
		metric.WithExplicitBucketBoundaries(0.1, 1))
	if err != nil {
		t.Fatal(err)
	}
	seconds.Record(sampled, 0.5, with)
	seconds.Record(sampled, 5, with)
	seconds.Record(sampled, 0)
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	return &rm
}

func unmarshal(t *testing.T, last func() ([]byte, http.Header), into proto.Message) {
	t.Helper()
	body, header := last()
	if got := header.Get("Content-Type"); got != "application/x-protobuf" {
		t.Errorf("Content-Type %q", got)
	}
	if err := proto.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
}
