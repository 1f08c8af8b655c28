package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// threatLine is how the test of the list reports a class and what holds it.
var threatLine = regexp.MustCompile(`^\s+attack_test\.go:\d+: (.*\S)\s*$`)

// threats prints the classes of attacks with the tests and rows that hold them. The list is a test's, which fails if
// one is held by nothing; this shows it.
func threats(out io.Writer) error {
	cmd := exec.Command("go", "test", "./integration/attack", "-count=1", "-run", "^TestAttackCoverage$", "-v")
	top, err := checkout()
	if err != nil {
		return err
	}
	cmd.Dir, cmd.Stderr = top, os.Stderr
	raw, err := cmd.Output()
	for line := range strings.Lines(string(raw)) {
		if m := threatLine.FindStringSubmatch(line); m != nil {
			fmt.Fprintln(out, m[1])
		}
	}
	if err != nil {
		return fmt.Errorf("a class of attacks is held by nothing, or the list could not be made: %w\n%s", err, raw)
	}
	return nil
}
