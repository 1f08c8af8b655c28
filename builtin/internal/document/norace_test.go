//go:build slow && !race

package document

const raceDetector = false
