package integration

import (
	"flag"
	"os"
	"testing"
)

// The tests have four tiers. With -short, the scripts run over one transport, and the tests of the repository itself: the loop of
// someone who changes the code. Without a flag, nearly every test runs, and large tables are sampled. With TOOLHOST_TESTS=ci in the
// environment, as .ci/run sets it, every test runs, and more of each table. With -long, the tables run whole, and the fault tests and
// the soak run as long as a night's run is worth.

var long = flag.Bool("long", false, "run whole tables, and long forms of the fault tests and the soak")

// shortTests are the tests that run with -short.
const shortTests = "^Test(Scripts|Layers|RoomsOf.*|ToolList|ReadmeToolTable|Links|SettingsPage|Order|EditAlike|AttackCoverage)$"

// shortSetting is the setting in which the scripts run with -short.
const shortSetting = "stdio-2026-07-28"

// ciTests are left out of the tier without a flag: they build or install packages, or repeat another test with another transport or
// input. TestFaultHuge has its links there.
const ciTests = "^Test(Npm|GoInstall|ReleaseBuild)$" +
	"|^TestScripts$/^(stdio-2025-11-25|http-2026-07-28)$" +
	"|^TestFaultHuge$/^huge" +
	"|^TestFaultStations$/^linked$/./^sticky=true$" +
	"|^TestAttackPlanted$/^(a-link-to-messages|a-link-to-zeros|many-lines)$"

// selectTier limits a run that names no test itself.
func selectTier() {
	switch {
	case flag.Lookup("test.run").Value.String() != "":
	case testing.Short():
		flag.Set("test.run", shortTests)
		if *only == "" {
			*only = shortSetting
		}
	case !inCI() && flag.Lookup("test.skip").Value.String() == "":
		flag.Set("test.skip", ciTests)
	}
}

// inCI reports whether the run is of the CI or the long tier.
func inCI() bool { return *long || os.Getenv("TOOLHOST_TESTS") == "ci" }

// each returns the step in a large table: outside CI three times that of CI.
func each(step int) int {
	if inCI() {
		return step
	}
	return 3 * step
}

// often returns how many times to try something.
func often(usual, inLong int) int {
	if *long {
		return inLong
	}
	return usual
}

// sampled returns every step-th entry of a table in CI, fewer outside it, and all of them with -long.
func sampled[T any](table []T, step int) []T {
	if *long {
		return table
	}
	var some []T
	for i := 0; i < len(table); i += each(step) {
		some = append(some, table[i])
	}
	return some
}
