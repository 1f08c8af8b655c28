package host

import (
	"flag"
	"math"
)

// Large tables are sampled and random tests have a number of rounds. The numbers in the tests are those of -tags slow. Without the tag a
// third of them is run, and -samples=100 makes a night's run of them.
var samples = flag.Float64("samples", defaultSamples, "the size of samples of tables and the rounds of random tests, as a multiple of that with -tags slow")

// Rounds returns how many times to try something that is tried n times with -tags slow. It is at least 1.
func Rounds(n int) int { return max(1, int(float64(n)**samples)) }

// Step returns the step in a large table that is taken in steps of n with -tags slow. It is at least 1.
func Step(n int) int { return max(1, int(math.Round(float64(n) / *samples))) }

// Sampled returns every Step(n)-th entry of a table.
func Sampled[T any](table []T, n int) []T {
	var some []T
	for i := 0; i < len(table); i += Step(n) {
		some = append(some, table[i])
	}
	return some
}

// Whole reports whether tables are to run whole and tests to take their time, as with -samples=100.
func Whole() bool { return *samples >= 10 }
