//go:build slow

package metrics

import (
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"github.com/toolhost/toolhost/mcpserver"
)

// The metrics of the process and of Go have the names, kinds and words of the collectors of Prometheus.
func TestRuntimeIsToldAsTheReferenceDoes(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reference := map[string]*dto.MetricFamily{}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range gathered {
		reference[f.GetName()] = f
	}
	ours := parse(t, New().write(mcpserver.Stats{}, ""))
	compared := 0
	for name, f := range ours {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			continue
		}
		want := reference[name]
		if want == nil {
			t.Errorf("%s is unknown to the reference", name)
			continue
		}
		compared++
		gotHelp, _, _ := strings.Cut(f.GetHelp(), ".")
		if wantHelp, _, _ := strings.Cut(want.GetHelp(), "."); f.GetType() != want.GetType() ||
			strings.TrimSpace(gotHelp) != strings.TrimSpace(wantHelp) {
			t.Errorf("%s is a %v, %q; the reference says %v, %q", name, f.GetType(), f.GetHelp(), want.GetType(),
				want.GetHelp())
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	if compared < 16 {
		t.Errorf("%d metrics were compared, want at least 16", compared)
	}
	for _, name := range []string{"process_resident_memory_bytes", "process_virtual_memory_bytes",
		"process_start_time_seconds", "process_max_fds"} {
		got, want := value(t, ours, name), reference[name].Metric[0].GetGauge().GetValue()
		if got < want/2 || got > want*2 {
			t.Errorf("%s is %v, the reference says %v", name, got, want)
		}
	}
}
