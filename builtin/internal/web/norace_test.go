//go:build slow && !race

package web

const lineWords = 1_000_000 // see race_test.go
