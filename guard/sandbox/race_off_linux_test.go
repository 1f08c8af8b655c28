//go:build !race

package sandbox

// raceEnabled says that programs start slowly.
const raceEnabled = false
