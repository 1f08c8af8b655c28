//go:build !linux

package atomicfile

import "runtime"

const locksAmongProcesses = runtime.GOOS != "windows"
