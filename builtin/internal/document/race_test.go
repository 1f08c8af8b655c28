//go:build race

package document

// raceDetector makes decoding ten times slower, and finds nothing in what runs
// in a single goroutine.
const raceDetector = true
