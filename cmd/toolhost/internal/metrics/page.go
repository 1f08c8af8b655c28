package metrics

import (
	"runtime"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/mcpserver"
)

// The metrics of a host. docs/observability.md lists them; a test compares both.
var (
	callsTotal = family{"toolhost_calls_total", counter,
		"Calls that have ended, by tool, verdict of the rules and outcome."}
	callDuration = family{"toolhost_call_duration_seconds", histogram,
		"How long calls took, waiting for their turn included."}
	callsInFlight = family{"toolhost_calls_in_flight", gauge, "Calls that are on their way through the host."}
	callsWaiting  = family{"toolhost_calls_waiting", gauge, "Calls in flight that wait for their turn."}
	scopes        = family{"toolhost_scopes", gauge, "Scopes that are remembered, by what names them."}
	sessions      = family{"toolhost_sessions", gauge, "Legacy MCP sessions over HTTP."}
	tasksRunning  = family{"toolhost_tasks_running", gauge, "Background tasks that run."}
	resultBytes   = family{"toolhost_results_bytes", gauge,
		"Size of the results that are kept in the state directory; up to 15 s old."}
	auditFailures = family{"toolhost_audit_failures_total", counter,
		"Calls that could not be recorded, or were refused because of that."}
	authFailures = family{"toolhost_auth_failures_total", counter, "HTTP requests without a valid credential."}
	searchState  = family{"toolhost_search_state", gauge,
		"1 for the state that searches of a root are in: walking, listing, indexing or ready."}
	searchFiles   = family{"toolhost_search_files", gauge, "Files of a root that are listed between searches."}
	searchWatches = family{"toolhost_search_watches", gauge,
		"Directories of a root whose changes the system announces."}
	searchIndex  = family{"toolhost_search_index_bytes", gauge, "Size of the index of the contents of a root."}
	sandboxState = family{"toolhost_sandbox", gauge, "1 for what contains commands; none when nothing does."}
	sandboxHolds = family{"toolhost_sandbox_enforces", gauge,
		"Whether the sandbox of this machine can hold writes, denied reads, the network, and processes."}
	openWorkspaces = family{"toolhost_workspaces_open", gauge,
		"Workspaces that `toolhost http --workspaces` has a link to."}
	workspaceCalls = family{"toolhost_workspace_requests_total", counter,
		"Requests to a workspace that were answered, by HTTP status."}
	workspaceTime = family{"toolhost_workspace_seconds_total", counter, "How long the requests to a workspace took."}
	buildInfo     = family{"toolhost_build_info", gauge, "1 for the version of this program and of Go."}
	goroutines    = family{"go_goroutines", gauge, "Number of goroutines that currently exist."}
	goInfo        = family{"go_info", gauge, "Information about the Go environment."}
	gcDuration    = family{"go_gc_duration_seconds", summary,
		"A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles."}
	memAlloc      = family{"go_memstats_alloc_bytes", gauge, "Number of bytes allocated in heap and currently in use."}
	memAllocTotal = family{"go_memstats_alloc_bytes_total", counter,
		"Total number of bytes allocated in heap until now, even if released already."}
	memHeapInuse   = family{"go_memstats_heap_inuse_bytes", gauge, "Number of heap bytes that are in use."}
	memHeapObjects = family{"go_memstats_heap_objects", gauge, "Number of currently allocated objects."}
	memNextGC      = family{"go_memstats_next_gc_bytes", gauge,
		"Number of heap bytes when next garbage collection will take place."}
	memStack = family{"go_memstats_stack_inuse_bytes", gauge,
		"Number of bytes obtained from system for stack allocator in non-CGO environments."}
	memSys      = family{"go_memstats_sys_bytes", gauge, "Number of bytes obtained from system."}
	procCPU     = family{"process_cpu_seconds_total", counter, "Total user and system CPU time spent in seconds."}
	procFDs     = family{"process_open_fds", gauge, "Number of open file descriptors."}
	procMaxFDs  = family{"process_max_fds", gauge, "Maximum number of open file descriptors."}
	procRSS     = family{"process_resident_memory_bytes", gauge, "Resident memory size in bytes."}
	procVirtual = family{"process_virtual_memory_bytes", gauge, "Virtual memory size in bytes."}
	procStart   = family{"process_start_time_seconds", gauge,
		"Start time of the process since unix epoch in seconds."}
)

// write returns the page with the metrics of a host.
func (m *Metrics) write(held mcpserver.Stats, version string) []byte {
	var p page
	m.writeCalls(&p)
	writeHost(&p, held)
	writeSearch(&p, held)
	writeProgram(&p, version)
	return p.Bytes()
}

// writeProgram writes what every process has.
func writeProgram(p *page, version string) {
	p.begin(buildInfo)
	p.sample(buildInfo.name, labels{"version", version, "goversion", runtime.Version()}, 1)
	writeRuntime(p)
	writeProcess(p)
}

func (m *Metrics) writeCalls(p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.begin(callsTotal)
	keys := make([]callLabels, 0, len(m.calls))
	for k := range m.calls {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b callLabels) int {
		return strings.Compare(a.tool+"\x00"+a.verdict+"\x00"+a.outcome, b.tool+"\x00"+b.verdict+"\x00"+b.outcome)
	})
	for _, k := range keys {
		p.sample(callsTotal.name, labels{"tool", k.tool, "verdict", k.verdict, "outcome", k.outcome},
			float64(m.calls[k]))
	}
	p.begin(callDuration)
	for _, tool := range sorted(m.durations) {
		d := m.durations[tool]
		p.distribution(callDuration.name, labels{"tool", tool}, buckets, d.counts, d.sum)
	}
	p.one(callsInFlight, float64(len(m.waiting)))
	p.one(callsWaiting, float64(m.nWaiting))
}

func writeHost(p *page, held mcpserver.Stats) {
	p.begin(scopes)
	for _, kind := range sorted(held.Scopes) {
		p.sample(scopes.name, labels{"kind", kind}, float64(held.Scopes[kind]))
	}
	p.one(sessions, float64(held.Sessions))
	p.one(tasksRunning, float64(held.Tasks))
	p.one(resultBytes, float64(held.ResultBytes))
	p.one(auditFailures, float64(held.AuditFailures))
	p.one(authFailures, float64(held.AuthFailures))
	backend := held.Sandbox
	if backend == "" {
		backend = "none"
	}
	p.begin(sandboxState)
	p.sample(sandboxState.name, labels{"backend", backend}, 1)
	p.begin(sandboxHolds)
	for _, what := range sorted(held.Enforces) {
		p.sample(sandboxHolds.name, labels{"what", what}, truth(held.Enforces[what]))
	}
}

func writeSearch(p *page, held mcpserver.Stats) {
	roots := sorted(held.Search)
	p.begin(searchState)
	for _, root := range roots {
		p.sample(searchState.name, labels{"root", root, "state", string(held.Search[root].State)}, 1)
	}
	for _, each := range []struct {
		family family
		value  func(root string) float64
	}{
		{searchFiles, func(root string) float64 { return float64(held.Search[root].Files) }},
		{searchWatches, func(root string) float64 { return float64(held.Search[root].Watches) }},
		{searchIndex, func(root string) float64 { return float64(held.Search[root].Index) }},
	} {
		p.begin(each.family)
		for _, root := range roots {
			p.sample(each.family.name, labels{"root", root}, each.value(root))
		}
	}
}
