package mcpserver

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

// BenchmarkStdioRead is a Read of a 200-line file as a client sees it, over pipes.
func BenchmarkStdioRead(b *testing.B) { benchmarkReads(b, 1, "") }

// BenchmarkStdioReads16 sends 16 Reads at once. A member that the protocol does not have keeps a call from the fast path of
// call_fast.go, so the two results show what that gains.
func BenchmarkStdioReads16(b *testing.B) {
	b.Run("fast", func(b *testing.B) { benchmarkReads(b, 16, "") })
	b.Run("library", func(b *testing.B) { benchmarkReads(b, 16, `"other":1,`) })
}

// benchmarkReads sends calls of Read at once and waits for their answers. Each message begins with a member, if one is given.
func benchmarkReads(b *testing.B, calls int, member string) {
	h, _ := openHost(b, map[string]string{"a.txt": strings.Repeat("a line of text\n", 200)})
	s, err := NewServer(h)
	if err != nil {
		b.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(context.Background(), inR, outW, nil) }()
	answers := bufio.NewReaderSize(outR, 1<<20)
	var batch strings.Builder
	for i := range calls {
		batch.WriteString(strings.Replace(toolCall(i+1, "Read", `{"file_path":"a.txt"}`), "{", "{"+member, 1) + "\n")
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(inW, batch.String()); err != nil {
			b.Fatal(err)
		}
		for range calls {
			if line, err := answers.ReadString('\n'); err != nil || strings.Contains(line, "isError") {
				b.Fatal(line, err)
			}
		}
	}
	inW.Close()
	go io.Copy(io.Discard, answers)
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
