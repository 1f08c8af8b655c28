package main

import (
	"errors"
	"os"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// A runStdio has the standard descriptors of a client in a cell.
type runStdio struct {
	files    []*os.File
	terminal *os.File
}

func openStdio() (*runStdio, error) {
	return nil, errors.New("toolhost run needs a sandbox, and there is none for Windows: use WSL 2")
}

func (*runStdio) attend(*builtin.Cell) (sandbox.Status, error) { return sandbox.Status{}, nil }
