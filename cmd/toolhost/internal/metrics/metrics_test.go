package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { http.DefaultClient.CloseIdleConnections(); os.Exit(code) }))
}

// parse reads a page as Prometheus does.
func parse(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return families
}

// value finds a sample by some of its labels.
func value(t *testing.T, all map[string]*dto.MetricFamily, name string, of ...string) float64 {
	t.Helper()
	found, sum := false, 0.0
	for _, m := range all[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.Label {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(of); i += 2 {
			fits = fits && has[of[i]] == of[i+1]
		}
		if fits {
			found = true
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	if !found {
		t.Errorf("there is no sample %s %q", name, of)
	}
	return sum
}

func openHost(t *testing.T, m *Metrics) *mcpserver.Host {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := mcpserver.Open(mcpserver.Config{
		Roots: []string{root}, RootsNamed: true, StateDir: t.TempDir(), Deny: []string{"Read(denied.txt)"},
		Observers: []audit.Observer{m},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestPageOfAHost(t *testing.T) {
	m := New()
	h := openHost(t, m)
	for _, c := range [][2]string{
		{"Read", `{"file_path":"a.txt"}`}, {"Read", `{"file_path":"a.txt"}`}, {"Read", `{"file_path":"missing.txt"}`},
		{"Read", `{"file_path":"denied.txt"}`}, {"Read", `{}`}, {"made up", `{}`}, {"made up too", `{}`},
	} {
		h.Call(t.Context(), h.AdmitNamed(""), mcpserver.Request{Tool: c[0], Args: json.RawMessage(c[1])})
	}
	text := m.write(h.Operator().Stats(), "v1")
	if problems, err := promlint.New(bytes.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("the linter says %v, %v", problems, err)
	}
	all := parse(t, text)
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"toolhost_calls_total", []string{"tool", "Read", "verdict", "allow", "outcome", "ok"}, 2},
		{"toolhost_calls_total", []string{"tool", "Read", "outcome", "refused", "verdict", "deny"}, 1},
		{"toolhost_calls_total", []string{"tool", "_other", "verdict", "none", "outcome", "invalid"}, 2},
		{"toolhost_calls_total", nil, 7},
		{"toolhost_call_duration_seconds", []string{"tool", "Read"}, 5},
		{"toolhost_calls_in_flight", nil, 0},
		{"toolhost_calls_waiting", nil, 0},
		{"toolhost_scopes", []string{"kind", "process"}, 1},
		{"toolhost_sessions", nil, 0},
		{"toolhost_tasks_running", nil, 0},
		{"toolhost_audit_failures_total", nil, 0},
		{"toolhost_auth_failures_total", nil, 0},
		{"toolhost_sandbox", nil, 1},
		{"toolhost_search_state", nil, 1},
		{"toolhost_build_info", []string{"version", "v1"}, 1},
	} {
		if got := value(t, all, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s %q is %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	if strings.Contains(string(text), "made up") || strings.Contains(string(text), "local") {
		t.Error("a label tells a caller's words or a principal")
	}
}

func TestCallsInFlight(t *testing.T) {
	m := New()
	first, second := audit.Call{ID: 1, Tool: "Read", Served: true}, audit.Call{ID: 2}
	m.CallBegan(t.Context(), first)
	m.CallBegan(t.Context(), second)
	m.CallReached(t.Context(), first, audit.AtTurn)
	m.CallReached(t.Context(), first, audit.AtRun)
	check := func(flight, waiting float64) {
		t.Helper()
		all := parse(t, m.write(mcpserver.Stats{}, ""))
		if got := value(t, all, "toolhost_calls_in_flight"); got != flight {
			t.Errorf("%v in flight, want %v", got, flight)
		}
		if got := value(t, all, "toolhost_calls_waiting"); got != waiting {
			t.Errorf("%v waiting, want %v", got, waiting)
		}
	}
	check(2, 1)
	m.CallEnded(t.Context(), second, audit.Record{}, builtin.Result{IsError: true}) // it gave up waiting
	check(1, 0)
	m.CallEnded(t.Context(), first, audit.Record{Verdict: "allow"}, builtin.Result{})
	check(0, 0)
}

func TestText(t *testing.T) {
	var p page
	p.begin(family{"x", gauge, "what it is."})
	p.sample("x", labels{"path", "a\\b\"c\nd\xff", "k", ""}, 1.5)
	p.sample("x", nil, 1e300)
	p.begin(family{"h", histogram, "how long."})
	p.distribution("h", labels{"k", "v"}, []float64{0.5, 1}, []uint64{1, 0, 2}, 7)
	want := `# HELP x what it is.
# TYPE x gauge
x{path="a\\b\"c\nd�",k=""} 1.5
x 1e+300
# HELP h how long.
# TYPE h histogram
h_bucket{k="v",le="0.5"} 1
h_bucket{k="v",le="1"} 1
h_bucket{k="v",le="+Inf"} 3
h_sum{k="v"} 7
h_count{k="v"} 3
`
	if p.String() != want {
		t.Errorf("got\n%s\nwant\n%s", p.String(), want)
	}
	all := parse(t, p.Bytes())
	if got := all["x"].Metric[0].Label[0].GetValue(); got != "a\\b\"c\nd�" {
		t.Errorf("a label is read as %q", got)
	}
}

func TestListen(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	short := filepath.Join(t.TempDir(), "short")
	if os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600) != nil ||
		os.WriteFile(short, []byte("x"), 0o600) != nil {
		t.Fatal("the token files cannot be written")
	}
	tests := []struct {
		address, token string
		problem        string
	}{
		{"127.0.0.1:0", "", ""},
		{"localhost:0", "", ""},
		{":0", "", ""},
		{"0", "", ""},
		{"[::1]:0", "", ""},
		{"0.0.0.0:0", "", "can be read by others"},
		{"example.com:0", "", "can be read by others"},
		{"0.0.0.0:0", token, ""},
		{"0.0.0.0:0", short, "at least 16"},
		{"0.0.0.0:0", token + "-missing", "no such file"},
		{"127.0.0.1:99999", "", "invalid port"},
		{"a:b:c", "", "it must be like"},
	}
	for _, tt := range tests {
		s, err := New().Listen(Config{Address: tt.address, TokenFile: tt.token, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			defer s.Close()
		}
		switch {
		case tt.problem == "" && err != nil && strings.Contains(err.Error(), "cannot assign"):
			t.Logf("%s: no such address here", tt.address)
		case tt.problem == "" && err != nil, tt.problem != "" &&
			(err == nil || !strings.Contains(err.Error(), tt.problem)):
			t.Errorf("%s with token %q: %v, want %q", tt.address, tt.token, err, tt.problem)
		case err == nil && tt.token == "" && !s.listener.Addr().(*net.TCPAddr).IP.IsLoopback():
			t.Errorf("%s listens on %s", tt.address, s.listener.Addr())
		}
	}
}

func TestServe(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name         string
		token        string
		method, path string
		host, auth   string
		want         int
	}{
		{"a scraper", "", "GET", Path, "", "", 200},
		{"a web page whose name was rebound", "", "GET", Path, "evil.example", "", 403},
		{"no such page", "", "GET", "/", "", "", 404},
		{"no such method", "", "POST", Path, "", "", 405},
		{"no token", token, "GET", Path, "", "", 401},
		{"a wrong token", token, "GET", Path, "", "Bearer 0123456789abcdeg", 401},
		{"the token", token, "GET", Path, "metrics.example", "Bearer 0123456789abcdef", 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := New().Listen(Config{Address: "127.0.0.1:0", TokenFile: tt.token,
				Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(ctx, func() mcpserver.Stats { return mcpserver.Stats{} }) }()
			req, err := http.NewRequest(tt.method, strings.TrimSuffix(s.URL(), Path)+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			if tt.auth != "" {
				req.Header.Set("Authorization", tt.auth)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, tt.want, body)
			}
			if tt.want == 200 {
				parse(t, body)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Who opens connections and sends nothing takes no more than the listener's part of the descriptors.
func TestConnectionsAreBounded(t *testing.T) {
	s, err := New().Listen(Config{Address: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, func() mcpserver.Stats { return mcpserver.Stats{} }) }()
	for range maxConnections {
		conn, err := net.Dial("tcp", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	conn, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), " 503 ") {
		t.Errorf("one more is answered %q, %v", answer, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
