package mcpserver

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

// BenchmarkStdioRead is a Read of a 200-line file as a client sees it, over pipes.
func BenchmarkStdioRead(b *testing.B) {
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
	call := toolCall(1, "Read", `{"file_path":"a.txt"}`) + "\n"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(inW, call); err != nil {
			b.Fatal(err)
		}
		if line, err := answers.ReadString('\n'); err != nil || strings.Contains(line, "isError") {
			b.Fatal(line, err)
		}
	}
	inW.Close()
	go io.Copy(io.Discard, answers)
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
