// Package samples sets how much of a large table a test runs, and how many rounds of a random test.
//
// The numbers in the tests are those of -tags slow. Without the tag a tenth of them is run, with -short a thirtieth, and with
// the race detector a sixth. .ci/run finds the tests by the names of these functions, and runs all without the race detector.
// -samples=100 makes a night's run of them.
package samples

import (
	"flag"
	"math"
	"testing"
)

var multiple = flag.Float64("samples", usual, "the size of samples of tables and the rounds of random tests, as a multiple of that with -tags slow")

func size() float64 {
	if race {
		return max(raced()/6, min(raced(), 1.0/6))
	}
	return raced()
}

func raced() float64 {
	if testing.Short() {
		return *multiple / 3
	}
	return *multiple
}

// Rounds returns how many times to try something that is tried n times with -tags slow. It is at least 1.
func Rounds(n int) int { return max(1, int(float64(n)*size())) }

// Raced is Rounds for a test of races, which the race detector is to see whole.
func Raced(n int) int { return max(1, int(float64(n)*raced())) }

// Step returns the step in a large table that is taken in steps of n with -tags slow. It is at least 1.
func Step(n int) int { return max(1, int(math.Round(float64(n)/size()))) }

// Of returns every Step(n)-th entry of a table.
func Of[T any](table []T, n int) []T { return every(table, Step(n)) }

// Few returns a thirtieth of a table whose entries are slow; with -tags slow all of it.
func Few[T any](table []T) []T {
	if size() >= 1 {
		return table
	}
	return every(table, int(3/size()))
}

func every[T any](table []T, step int) []T {
	var some []T
	for i := 0; i < len(table); i += step {
		some = append(some, table[i])
	}
	return some
}

// Whole reports whether tables are to run whole and tests to take their time, as with -samples=100.
func Whole() bool { return *multiple >= 10 }
