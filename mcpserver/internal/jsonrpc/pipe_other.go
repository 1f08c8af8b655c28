//go:build !linux

package jsonrpc

// growPipe does nothing: only Linux lets a program set the capacity of a pipe.
func growPipe(any) {}
