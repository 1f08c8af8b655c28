package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The latencies of a cluster. Their sources are in .release/agent-sandbox/README.md.
const (
	warmClaim = 92 * time.Millisecond // until a claim has its sandbox
	apiAnswer = 10 * time.Millisecond
)

// clusterVariable makes a test process a cluster.
const clusterVariable = "TOOLHOST_TEST_CLUSTER"

// TestClusterProcess is the cluster of BenchmarkFront, so that its memory and its time are not counted.
func TestClusterProcess(t *testing.T) {
	if os.Getenv(clusterVariable) == "" {
		t.Skip("it is a process of a benchmark")
	}
	api := &fakeAPI{objects: map[string]map[string]any{}, changed: make(chan struct{}), engine: warmClaim}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(apiAnswer)
		if strings.HasSuffix(r.URL.Path, "/exec") {
			newSite(t).exec(w)
			return
		}
		api.ServeHTTP(w, r)
	}))
	web.EnableHTTP2, web.Config.ErrorLog = true, log.New(io.Discard, "", 0) // links break when the benchmark ends
	web.StartTLS()
	defer web.Close()
	cluster := map[string]any{
		"server":                     web.URL,
		"certificate-authority-data": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}),
	}
	config, _ := json.Marshal(map[string]any{
		"clusters": []any{map[string]any{"cluster": cluster}},
		"users":    []any{map[string]any{"user": map[string]any{"token": "t"}}},
	})
	fmt.Println(string(config))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
}

// exec answers as an API server does that starts a shell in a pod. Where the script of the launcher ends, the far host
// takes over.
func (s *site) exec(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n")
	for script := ""; !strings.HasSuffix(script, "exit 0\n}\n"); {
		part, err := readFrame(rw.Reader)
		if err != nil {
			return
		}
		script += string(part)
	}
	far, err := s.dial()
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		defer conn.Close()
		frame := make([]byte, linkBuffer)
		for {
			n, err := far.Read(frame[5:])
			if err != nil {
				return
			}
			copy(frame, []byte{0x82, 126, byte((n + 1) >> 8), byte(n + 1), 1})
			if _, err := conn.Write(frame[:5+n]); err != nil {
				return
			}
		}
	}()
	for {
		part, err := readFrame(rw.Reader)
		if err != nil {
			return
		}
		if _, err := far.Write(part); err != nil {
			return
		}
	}
}

// readFrame reads the input of a command from a WebSocket; of other frames nothing.
func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := int(head[1] & 0x7f)
	if length == 126 {
		long := make([]byte, 2)
		if _, err := io.ReadFull(r, long); err != nil {
			return nil, err
		}
		length = int(long[0])<<8 | int(long[1])
	}
	text := make([]byte, 4+length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	mask, text := text[:4], text[4:]
	for i := range text {
		text[i] ^= mask[i%4]
	}
	if head[0] != 0x82 || length == 0 || text[0] != 0 {
		return nil, nil
	}
	return text[1:], nil
}

// startCluster starts the process of a cluster, and makes it that of kubectl.
func startCluster(b *testing.B) {
	far := exec.Command(os.Args[0], "-test.run=^TestClusterProcess$")
	far.Env = append(os.Environ(), clusterVariable+"=1")
	far.Stderr = os.Stderr
	in, err := far.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := far.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := far.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = far.Process.Kill(); _ = far.Wait() })
	config, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("PATH", writeKubectl(b, strings.TrimSpace(config)))
	b.Setenv("KUBECONFIG", "set")
}

// BenchmarkFront measures a front with workspaces that are claimed from a pool, linked through the API server and idle:
//
//   - ms/claim: from the first call in a new workspace to its answer, half of them, without the time of the engine;
//   - B/workspace: the memory of one that is idle;
//   - calls/core-s: calls for each second of a processor, with the HTTP client of the benchmark.
//
// Run it with -benchtime 1x. 10,000 workspaces need 3 GB of memory and 10,000 open files in each of two processes.
func BenchmarkFront(b *testing.B) {
	for _, count := range []int{500, maxRelays} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			startCluster(b)
			for range b.N {
				measureFront(b, count)
			}
		})
	}
}

func measureFront(b *testing.B, count int) {
	const perCaller, alone, atOnce, calls = 16, 50, 32, 20_000
	pool, err := ParsePool("sandbox://ns/pool")
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	r := newRelays(b, RelaysConfig{PerCaller: perCaller})
	defer r.Close()
	batch := fmt.Sprint(time.Now().UnixNano())
	of := func(i int) Workspace {
		caller, name := fmt.Sprint("caller", i/perCaller), fmt.Sprint(batch, i)
		return Workspace{Caller: caller, Name: name, Key: name, Bearer: caller, Dial: func() (Dialer, error) {
			return NewLauncher(pool.Claim(caller, name).Target(), "").Dial, nil
		}}
	}
	enterFirst := func(i int) {
		if got, err := enter(r, of(i), http.MethodPost, "x"); err != nil || got != "done x" {
			b.Errorf("workspace %d: %q, %v", i, got, err)
		}
	}
	before := inUse()
	took := make([]time.Duration, alone)
	for i := range took {
		began := time.Now()
		enterFirst(i)
		took[i] = time.Since(began) - warmClaim
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[alone/2])/float64(time.Millisecond), "ms/claim")
	inParallel(atOnce, count-alone, func(i int) { enterFirst(alone + i) })
	b.ReportMetric(float64(inUse()-before)/float64(count), "B/workspace")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var i int
		_, _ = fmt.Sscan(request.URL.Query().Get("i"), &i)
		next, err := r.Enter(of(i), false)
		if err != nil {
			b.Error(err)
			return
		}
		next.ServeHTTP(w, request)
	}))
	defer web.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	used := processorTime()
	inParallel(atOnce, calls, func(i int) {
		url := fmt.Sprintf("%s?i=%d", web.URL, i%count)
		response, err := client.Post(url, "application/json", bytes.NewReader(callRequest))
		if err != nil {
			b.Error(err)
			return
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != "done "+string(callRequest) {
			b.Errorf("a call has %q, %v", got, err)
		}
	})
	b.ReportMetric(calls/(processorTime()-used).Seconds(), "calls/core-s")
	b.ReportMetric(0, "ns/op")
}

// callRequest is a message of a usual length.
var callRequest = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"` +
	strings.Repeat("x", 200) + `"}}}`)

// inParallel does something for the numbers below count.
func inParallel(atOnce, count int, do func(i int)) {
	next := make(chan int)
	var wait sync.WaitGroup
	for range atOnce {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wait.Wait()
}

// inUse returns the memory of live objects and stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// processorTime returns what this process has used of processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
