package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// floor serves without doing anything: it answers every Read with as much text as a real one, and any other call with a
// word. What its calls take is what the client, the pipes and the kernel take: no one can be faster.
func floor(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<18)
	text, err := json.Marshal(fileText(0, 0))
	if err != nil {
		return err
	}
	long := append(append([]byte(`{"content":[{"type":"text","text":`), text...), `}]}`...)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`))
		if !ok {
			continue // a notification
		}
		id, _ := digits(rest)
		answer := []byte(`{"content":[{"type":"text","text":"done"}]}`)
		if bytes.HasSuffix(line, []byte(`"name":"Read"}}`+"\n")) {
			answer = long
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, answer); err != nil {
			return err
		}
	}
}
