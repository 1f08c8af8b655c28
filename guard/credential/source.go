package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

const (
	// commandTime is how long a command may take to write a value.
	commandTime = 30 * time.Second
	// commandAgain is how long a value that a command has written is kept.
	commandAgain = 5 * time.Minute
	// failedAgain is how long a failure is kept, so that programs that try again do not start commands.
	failedAgain = 30 * time.Second
	// maxValue bounds a value, in bytes.
	maxValue = 64 << 10
)

// ReadFile returns the value in a file, which is one line.
func ReadFile(path string) (string, error) {
	text, err := readAll(path)
	return strings.TrimSpace(text), err
}

// readAll reads a file, of which "~/" is the home directory.
func readAll(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxValue))
	return string(text), err
}

// commands are those that write values, by their text.
var commands sync.Map

type command struct {
	mu    sync.Mutex
	value string
	err   error
	at    time.Time
}

// Run returns what a command of the person's settings writes. The result is kept for 5 minutes. The command runs
// outside of the sandbox.
func Run(ctx context.Context, text string) (string, error) {
	entry, _ := commands.LoadOrStore(text, &command{})
	c := entry.(*command)
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := commandAgain
	if c.err != nil {
		keep = failedAgain
	}
	if c.at.IsZero() || time.Since(c.at) >= keep {
		c.value, c.err = run(context.WithoutCancel(ctx), text) // others wait for it, too
		c.at = time.Now()
	}
	return c.value, c.err
}

// run runs a command and returns what it writes.
func run(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	shell := []string{"sh", "-c", text}
	if os.PathSeparator == '\\' {
		shell = []string{"cmd", "/c", text}
	}
	cmd := hostprogram.Command(ctx, shell[0], shell[1:]...) // its PATH has no directory that tools write
	var out bytes.Buffer
	cmd.Stdout = &out // not its errors, which may contain the value
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	value := strings.TrimSpace(out.String())
	if value == "" || len(value) > maxValue {
		return "", fmt.Errorf("%s: %w", text, errors.New("it wrote no value"))
	}
	return value, nil
}

// sent holds the values that the near side of a remote host sent, by variable. A value that is expected but has not
// come yet is "".
var sent sync.Map

// Expect makes a variable wait for a value of the near side, which takes precedence over all other sources.
func Expect(variable string) { sent.LoadOrStore(variable, "") }

// Expected reports whether the value of a variable comes from the near side.
func Expected(variable string) bool {
	_, ok := sent.Load(variable)
	return ok
}

// Receive keeps the values of variables that are expected, in memory only.
func Receive(values map[string]string) {
	for variable, value := range values {
		if Expected(variable) {
			sent.Store(variable, value)
		}
	}
}

// Value returns the value of a variable: what the near side sent, what a command writes, what a file holds, or what was
// inherited.
func Value(ctx context.Context, variable, command, file, inherited string) (string, error) {
	if value, ok := sent.Load(variable); ok {
		if value == "" {
			return "", errors.New("the near side has not sent it")
		}
		return value.(string), nil
	}
	switch {
	case command != "":
		return Run(ctx, command)
	case file != "":
		return ReadFile(file)
	case inherited == "":
		return "", errors.New("the variable is not set")
	}
	return inherited, nil
}
