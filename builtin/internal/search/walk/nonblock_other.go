//go:build !unix

package walk

// nonblock is nothing where file systems hold no FIFOs.
const nonblock = 0
