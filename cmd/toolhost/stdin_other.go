//go:build !unix

package main

import "os"

// pollable returns f: only Unix can switch how reads wait.
func pollable(f *os.File) *os.File { return f }
