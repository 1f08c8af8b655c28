package stdio

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// benchmarkMode is the environment variable that turns the test program into a host for BenchmarkReader.
const benchmarkMode = "TOOLHOST_BENCHMARK_READER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(benchmarkMode); mode {
	case "":
		os.Exit(m.Run())
	default:
		serveBenchmark(mode == "inline")
	}
}

// serveBenchmark serves the standard input with read, or with a goroutine for each request.
func serveBenchmark(inline bool) {
	c := &conn{handler: spinner{}, ctx: context.Background(), session: newSession(), out: jsonrpc.NewWriter(os.Stdout),
		calls: map[string]*inFlight{}}
	in, ended := bufio.NewReaderSize(os.Stdin, 64<<10), make(chan error, 1)
	if inline {
		go c.read(in, ended)
		<-ended
		return
	}
	for {
		run, err := c.message(in)
		if err != nil {
			return
		}
		go run()
	}
}

// BenchmarkReader compares the reader with one that starts a goroutine for each request. The host is a separate process,
// as for real clients. A request takes as long as a Read of a small file.
func BenchmarkReader(b *testing.B) {
	for _, batch := range []int{1, 16} {
		for _, mode := range []string{"inline", "goroutines"} {
			b.Run(fmt.Sprintf("%s/%d", mode, batch), func(b *testing.B) { benchmarkReader(b, mode, batch) })
		}
	}
}

func benchmarkReader(b *testing.B, mode string, batch int) {
	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), benchmarkMode+"="+mode)
	in, err := host.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := host.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := host.Start(); err != nil {
		b.Fatal(err)
	}
	var messages strings.Builder
	for i := range batch {
		fmt.Fprintf(&messages, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Read","arguments":{}}}`+"\n", i)
	}
	answers := bufio.NewReaderSize(out, 1<<20)
	for b.Loop() {
		if _, err := io.WriteString(in, messages.String()); err != nil {
			b.Fatal(err)
		}
		for range batch {
			if _, err := answers.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
	}
	in.Close()
	if err := host.Wait(); err != nil {
		b.Fatal(err)
	}
}

// A spinner is a handler whose requests keep a processor busy.
type spinner struct{ transport.Handler }

func (spinner) Open(text []byte) (transport.Message, *jsonrpc.Error) {
	m, wrong := jsonrpc.Open(text)
	return spin{Envelope: m}, wrong
}

type spin struct {
	transport.Message
	jsonrpc.Envelope
}

func (s spin) Content() jsonrpc.Envelope { return s.Envelope }

func (spin) Validate(auth.Identity) *jsonrpc.Error { return nil }

func (spin) Admit(ctx context.Context, _ transport.Peer) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

func (s spin) Answer(context.Context) mcp.JSONRPCMessage {
	for began := time.Now(); time.Since(began) < 30*time.Microsecond; {
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(s.ID),
		Result: mcp.NewToolResultText("done")}
}
