// Package telemetry traces and measures the calls of a host with OpenTelemetry, and sends the data to a collector
// over OTLP. Only the standard environment variables configure it; without them it starts and sends nothing.
//
// Spans and metrics follow the semantic conventions for MCP servers. They contain tools, verdicts, durations and
// sizes. Paths, commands, rules and principals are left out unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
// is true; arguments and results are never recorded.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// FlushTime is how long the end of a host waits until a collector has taken the remaining data.
const FlushTime = 2 * time.Second

// variableDetails is the variable that asks for data that may reveal a person's work.
const variableDetails = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// scopeName is the instrumentation scope of the spans and metrics.
const scopeName = "github.com/toolhost/toolhost/mcpserver"

// Names of the semantic conventions, version 1.40. Their packages are not imported, because each would cost every
// start time for initialization; a test compares the names.
const (
	schemaURL    = "https://opentelemetry.io/schemas/1.40.0"
	durationName = "mcp.server.operation.duration"
	durationText = "MCP request or notification duration as observed on the receiver from the time it was received " +
		"until the result or ack is sent."
)

// buckets are the bounds for durations in these conventions, in seconds.
var buckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// A Config has what the environment does not say.
type Config struct {
	// Version is the version of this program.
	Version string
	// Log gets the errors of sending, at a limited rate. It must not be nil.
	Log *slog.Logger
}

// A Telemetry observes calls and sends data about them. Create one with [Start], and call Shutdown.
type Telemetry struct {
	tracer   trace.Tracer            // nil: no traces
	duration metric.Float64Histogram // nil: no metrics
	details  bool
	parents  propagation.TraceContext
	shutdown []func(context.Context) error
	giveUp   []func() // cancel what is being sent
}

// HideSecrets removes from the environment what would let later commands send data to the collector as this host: the
// headers, and the user and password in an address. If Start is used, it must be called before.
func HideSecrets() {
	for _, signal := range []string{"", "TRACES_", "METRICS_", "LOGS_"} {
		name := "OTEL_EXPORTER_OTLP_" + signal + "ENDPOINT"
		if text := os.Getenv(name); strings.Contains(text, "@") {
			bare := ""
			if u, err := url.Parse(text); err == nil && u.Host != "" {
				u.User = nil
				bare = u.String()
			}
			_ = os.Setenv(name, bare) // fails only for invalid names and values
		}
		_ = os.Unsetenv("OTEL_EXPORTER_OTLP_" + signal + "HEADERS") // fails only for invalid names
	}
}

// Files returns the files with certificates and those with keys that the environment names.
func Files() (certificates, keys []string) {
	for _, signal := range []string{"", "TRACES_", "METRICS_"} {
		for name, list := range map[string]*[]string{"CERTIFICATE": &certificates, "CLIENT_CERTIFICATE": &certificates,
			"CLIENT_KEY": &keys} {
			if file := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + name); file != "" {
				*list = append(*list, file)
			}
		}
	}
	return certificates, keys
}

// Start starts to trace and measure as the environment says. It returns nil if the environment asks for nothing. An
// error about one variable need not stop the host: the error says what does not work, and the rest works.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	traces, withTraces, err1 := endpointFromEnv(tracesSignal, os.Getenv)
	metrics, withMetrics, err2 := endpointFromEnv(metricsSignal, os.Getenv)
	wrong := errors.Join(err1, err2)
	if !withTraces && !withMetrics {
		return nil, wrong
	}
	about, err := describe(ctx, cfg.Version)
	wrong = errors.Join(wrong, err)
	otel.SetErrorHandler(&quiet{log: cfg.Log, now: time.Now})
	t := &Telemetry{details: strings.EqualFold(os.Getenv(variableDetails), "true")}
	if withTraces {
		exporter := newSpanExporter(traces)
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
		t.tracer = provider.Tracer(scopeName, trace.WithInstrumentationVersion(cfg.Version),
			trace.WithSchemaURL(schemaURL))
		t.shutdown, t.giveUp = append(t.shutdown, provider.Shutdown), append(t.giveUp, exporter.close)
	}
	if withMetrics {
		exporter := newMetricExporter(metrics)
		reader := sdkmetric.NewPeriodicReader(exporter)
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
		meter := provider.Meter(scopeName, metric.WithInstrumentationVersion(cfg.Version),
			metric.WithSchemaURL(schemaURL))
		t.duration, err = meter.Float64Histogram(durationName,
			metric.WithDescription(durationText), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...))
		t.shutdown, t.giveUp = append(t.shutdown, provider.Shutdown), append(t.giveUp, exporter.close)
		wrong = errors.Join(wrong, err)
	}
	return t, wrong
}

// describe returns the resource: this program, and what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say, which
// takes precedence.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "toolhost"),
			attribute.String("service.version", version)),
		resource.WithFromEnv(),
	)
}

// Shutdown sends the remaining data, for at most [FlushTime]. The nil Telemetry has nothing to send.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, FlushTime,
		fmt.Errorf("the collector did not answer within %s", FlushTime))
	defer cancel()
	errs := make([]error, len(t.shutdown))
	var all sync.WaitGroup
	for i, shutdown := range t.shutdown {
		all.Go(func() { errs[i] = shutdown(ctx) })
	}
	all.Wait()
	for _, giveUp := range t.giveUp {
		giveUp()
	}
	return errors.Join(errs...)
}

// A quiet error handler logs what cannot be sent as a warning at most once per [quietTime], and otherwise for
// debugging: a warning every five seconds about a collector that is down would not help.
type quiet struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told time.Time
}

const quietTime = 10 * time.Minute

// Handle implements otel.ErrorHandler.
func (q *quiet) Handle(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	level := slog.LevelDebug
	if now := q.now(); q.told.IsZero() || now.Sub(q.told) > quietTime {
		q.told, level = now, slog.LevelWarn
	}
	q.log.Log(context.Background(), level, "traces or metrics could not be sent; calls go on", "error", err)
}
