package agents

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/integration/host"
)

// BenchmarkRun compares a client in toolhost run with the same client alone, in one run, since only that tells anything on a busy
// machine. The goals on a quiet one are 60 ms more for the start, and 5 % more for a build:
//
//	go test ./integration/agents -run '^$' -bench 'BenchmarkRun/start' -benchtime 50x
//	go test ./integration/agents -run '^$' -bench 'BenchmarkRun/build' -benchtime 5x
func BenchmarkRun(b *testing.B) {
	p := newPerson(b)
	here, err := filepath.Abs("../..")
	host.Must(b, err)
	gopath, err := exec.Command("go", "env", "GOPATH").Output()
	host.Must(b, err)
	for _, bb := range []struct {
		name, dir string
		client    []string
	}{
		{"start", p.Project, []string{"true"}},
		{"build", here, []string{"sh", "-c", "GOCACHE=$(mktemp -d) go build -o /dev/null ./guard/... && echo built"}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			took := map[string][]time.Duration{}
			for range b.N {
				for _, how := range []string{"alone", "inside"} {
					argv := bb.client
					if how == "inside" {
						argv = append([]string{host.Binary, "run", "--root", bb.dir, "--"}, argv...)
					}
					cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
					cmd.Dir, cmd.Env = bb.dir, append(host.CleanEnv(p.Home), "GOPATH="+string(gopath[:len(gopath)-1]),
						"GOPROXY=off")
					began := time.Now()
					if out, err := cmd.CombinedOutput(); err != nil {
						b.Fatalf("%s: %v\n%s", how, err, out)
					}
					took[how] = append(took[how], time.Since(began))
				}
			}
			slices.Sort(took["alone"])
			slices.Sort(took["inside"])
			alone, inside := took["alone"][b.N/2], took["inside"][b.N/2]
			b.ReportMetric(float64((inside-alone).Microseconds())/1000, "ms-more")
			b.ReportMetric(float64(inside)/float64(alone), "times-alone")
			b.ReportMetric(0, "ns/op")
		})
	}
}
