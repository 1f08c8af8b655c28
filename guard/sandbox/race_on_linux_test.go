//go:build race

package sandbox

// raceEnabled says that programs start slowly: the test binary is started
// several hundred times.
const raceEnabled = true
