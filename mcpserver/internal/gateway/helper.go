package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Limits of a headersHelper.
const (
	helperTime = 10 * time.Second
	maxHelped  = 64 << 10 // bytes of its output
)

// runHelper runs the program that makes headers, for which it prints a JSON object of strings. What it prints is in no error.
func runHelper(e *Entry) (map[string]string, error) {
	if e.HeadersHelper == "" {
		return nil, nil
	}
	if e.Trust == Project {
		return nil, errors.New("its headersHelper is not run: only an entry of your own may have one")
	}
	ctx, cancel := context.WithTimeout(context.Background(), helperTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", e.HeadersHelper)
	cmd.Env = append(os.Environ(), "CLAUDE_CODE_MCP_SERVER_NAME="+e.Name, "CLAUDE_CODE_MCP_SERVER_URL="+e.URL)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	headers := map[string]string{}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("its headersHelper did not end within %s", helperTime)
	case err != nil:
		return nil, fmt.Errorf("its headersHelper failed: %w", err)
	case out.Len() > maxHelped || json.Unmarshal(out.Bytes(), &headers) != nil:
		return nil, errors.New("its headersHelper did not print a JSON object of strings")
	}
	return headers, nil
}
