//go:build !unix

package main

import "os"

// pollable returns f: only on Unix is there a choice how its reads wait.
func pollable(f *os.File) *os.File { return f }
