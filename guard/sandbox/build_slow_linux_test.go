//go:build slow

package sandbox

// goBuild compiles, links and runs a program.
const goBuild = `go build -o "$TMPDIR/prog" ./src && "$TMPDIR/prog" && echo built`
