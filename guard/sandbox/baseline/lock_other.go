//go:build !unix

package baseline

import "os"

// tryLock reports success: nothing contains commands here.
func tryLock(*os.File) bool { return true }

func shareLock(*os.File) {}

func unlock(*os.File) {}
