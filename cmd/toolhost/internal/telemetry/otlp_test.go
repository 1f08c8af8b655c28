package telemetry

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestFromEnv(t *testing.T) {
	const generic = "OTEL_EXPORTER_OTLP_ENDPOINT"
	plain := endpoint{URL: "http://c:4318/v1/traces", Headers: map[string]string{}, Timeout: defaultTimeout}
	tests := []struct {
		name    string
		env     map[string]string
		want    endpoint
		ok      bool
		problem string
	}{
		{name: "nothing is asked for"},
		{name: "the common endpoint", env: map[string]string{generic: "http://c:4318"}, want: plain, ok: true},
		{name: "a slash at its end", env: map[string]string{generic: "http://c:4318/"}, want: plain, ok: true},
		{name: "a path before the signal's", env: map[string]string{generic: "https://c/otlp"},
			want: endpoint{URL: "https://c/otlp/v1/traces", Headers: map[string]string{}, Timeout: defaultTimeout},
			ok:   true},
		{name: "the signal's own endpoint is taken as it is", env: map[string]string{generic: "http://d", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/x"},
			want: endpoint{URL: "http://c/x", Headers: map[string]string{}, Timeout: defaultTimeout}, ok: true},
		{name: "the exporter by its name", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"},
			want: endpoint{URL: "http://localhost:4318/v1/traces", Headers: map[string]string{},
				Timeout: defaultTimeout}, ok: true},
		{name: "everything", env: map[string]string{
			generic: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1=2",
			"OTEL_EXPORTER_OTLP_TIMEOUT":        "9",
			"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "250", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "Delta",
		}, want: endpoint{URL: "http://c:4318/v1/traces", Headers: map[string]string{"api-key": "a b", "x": "1=2"},
			Timeout: 250 * time.Millisecond, Gzip: true, Delta: true}, ok: true},
		{name: "disabled", env: map[string]string{generic: "http://c:4318", "OTEL_SDK_DISABLED": "True"}},
		{name: "no traces", env: map[string]string{generic: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}},
		{name: "only metrics", env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"}},
		{name: "gRPC", env: map[string]string{generic: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, problem: "only http/protobuf"},
		{name: "no URL", env: map[string]string{generic: "c:4318"}, problem: "must be a URL"},
		{name: "bad headers keep their secret", env: map[string]string{generic: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "s3cr3t"}, problem: "must be a list"},
		{name: "a header of two lines", env: map[string]string{generic: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0ac"}, problem: "must be a list"},
		{name: "bad timeout", env: map[string]string{generic: "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, problem: "milliseconds"},
		{name: "bad compression", env: map[string]string{generic: "http://c", "OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, problem: "gzip or none"},
		{name: "no certificate", env: map[string]string{generic: "https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/does/not/exist"}, problem: "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok, err := endpointFromEnv(tracesSignal, func(name string) string { return tt.env[name] })
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("error %v, want one with %q", err, tt.problem)
				}
				return
			}
			if err != nil || ok != tt.ok {
				t.Fatalf("ok %v, error %v", ok, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSend(t *testing.T) {
	tests := []struct {
		name   string
		status []int // of the answers in turn; the last one stays
		tries  int32
		fails  bool
	}{
		{"taken", []int{200}, 1, false},
		{"busy, then taken", []int{503, 429, 202}, 3, false},
		{"rejected for good", []int{400}, 1, true},
		{"a redirect is not followed", []int{307}, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var tries atomic.Int32
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(tries.Add(1))
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.status[min(n, len(tt.status))-1])
			})
			synctest.Test(t, func(t *testing.T) {
				s := newSender(endpoint{URL: "http://collector/"})
				s.http = inProcess(handler)
				err := s.send(t.Context(), []byte("x"))
				if (err != nil) != tt.fails {
					t.Errorf("error %v", err)
				}
			})
			if got := tries.Load(); got != tt.tries {
				t.Errorf("%d tries, want %d", got, tt.tries)
			}
		})
	}
}

func TestSendGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		s := newSender(endpoint{URL: "http://collector/"})
		s.http = inProcess(handler)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.send(ctx, []byte("x")); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("error %v, want the collector's last word", err)
		}
	})
}

// inProcess is a client whose requests are answered without a network.
func inProcess(h http.Handler) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result(), nil
		}),
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func FuzzParseHeaders(f *testing.F) {
	for _, text := range []string{"a=b", "a=b,c=d%20e", "=", "a", ",,", "a=%zz", "a=b%0d%0ac: d", "ü=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		headers, err := parseHeaders(text)
		if err != nil {
			return
		}
		for name, value := range headers {
			if name == "" || strings.ContainsAny(name, " \r\n:") || strings.ContainsAny(value, "\r\n") {
				t.Errorf("%q gives the header %q: %q", text, name, value)
			}
		}
	})
}

func TestKindThatIsNotSent(t *testing.T) {
	rm := metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{
		Metrics: []metricdata.Metrics{{Name: "x", Data: metricdata.Summary{}}},
	}}}
	if err := newMetricExporter(endpoint{}).Export(context.Background(), &rm); err == nil {
		t.Error("a kind that is not encoded was dropped without a word")
	}
}
