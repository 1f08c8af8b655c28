package integration

import (
	"flag"
	"testing"
)

// The tests have three tiers. With -short, the scripts run over one transport, and the tests of the repository itself: the loop of
// someone who changes the code. Without a flag, every test runs, and large tables are sampled. With -long, the tables run whole, and
// the fault tests and the soak run as long as a night's run is worth.

var long = flag.Bool("long", false, "run whole tables, and long forms of the fault tests and the soak")

// shortTests are the tests that run with -short.
const shortTests = "^Test(Scripts|Layers|RoomsOf.*|ToolList|ReadmeToolTable|Links|SettingsPage|Order|EditAlike|AttackCoverage)$"

// shortSetting is the setting in which the scripts run with -short.
const shortSetting = "stdio-2026-07-28"

// selectShort limits a run with -short that names no test itself.
func selectShort() {
	if !testing.Short() || flag.Lookup("test.run").Value.String() != "" {
		return
	}
	flag.Set("test.run", shortTests)
	if *only == "" {
		*only = shortSetting
	}
}

// often returns how many times to try something.
func often(usual, inLong int) int {
	if *long {
		return inLong
	}
	return usual
}

// sampled returns every step-th entry of a table, and all of them with -long.
func sampled[T any](table []T, step int) []T {
	if *long {
		return table
	}
	var some []T
	for i := 0; i < len(table); i += step {
		some = append(some, table[i])
	}
	return some
}
