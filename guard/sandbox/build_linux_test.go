//go:build !slow

package sandbox

// goBuild compiles a package that imports nothing: with an empty cache a program takes half a minute of two processors.
const goBuild = `mkdir lib && echo package lib > lib/l.go && go build ./lib && rm -r lib && echo built`
