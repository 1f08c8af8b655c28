package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Announced reads what a host over HTTP writes to stderr until it has said its address and its token, and drops the
// rest while the host runs. A host that ends before has an error.
func Announced(stderr io.Reader) (url, token string, err error) {
	lines := bufio.NewScanner(stderr)
	for (url == "" || token == "") && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			url = rest
		}
		if rest, ok := strings.CutPrefix(lines.Text(), "token "); ok {
			token, _, _ = strings.Cut(rest, " ")
		}
		if file, ok := strings.CutPrefix(lines.Text(), "the token is in "); ok {
			raw, err := os.ReadFile(file)
			if err != nil {
				return "", "", fmt.Errorf("the host's token: %w", err)
			}
			token = strings.TrimSpace(string(raw))
		}
	}
	if url == "" || token == "" {
		return "", "", errors.Join(errors.New("the host did not say its address and token"), lines.Err())
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // else it would wait for a reader
	return url, token, nil
}
