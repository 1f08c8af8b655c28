package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory is what a process and all below it hold in memory, in bytes: pages that several of them share, such as those
// of their program, count once. NaN where /proc does not tell.
func memory(pid int) float64 {
	children := map[int][]int{}
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(entries) == 0 {
		return math.NaN()
	}
	for _, path := range entries {
		fields := statFields(path)
		if len(fields) < 2 {
			continue // it has ended
		}
		parent, _ := strconv.Atoi(fields[1])
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		children[parent] = append(children[parent], child)
	}
	total := 0.0
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		total += size(next[0], "smaps_rollup", "Pss:")
		next = append(next, children[next[0]]...)
	}
	return total
}

// resident is the resident memory of one process alone, in bytes.
func resident(pid int) float64 { return size(pid, "status", "VmRSS:") }

// statFields are the fields of a stat file behind the name: the state, the parent, …
func statFields(path string) []string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

// size reads a size in bytes from a file that tells of a process, 0 if that has ended.
func size(pid int, file, name string) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024
		}
	}
	return 0
}

// worked is the processor time that a process has used, in clock ticks of 10 ms.
func worked(pid int) int {
	fields := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if len(fields) < 13 {
		return -1
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// settle waits until a process has nothing more to do: what it does in the background, such as an index, is then ready.
// Where processor time cannot be seen it waits for as long as that takes on a large tree.
func settle(pid int) {
	const still, look, most = 400 * time.Millisecond, 50 * time.Millisecond, 60 * time.Second
	begun := time.Now()
	last, since := worked(pid), begun
	if last < 0 {
		time.Sleep(5 * time.Second)
		return
	}
	for time.Since(since) < still && time.Since(begun) < most {
		time.Sleep(look)
		if now := worked(pid); now > last {
			last, since = now, time.Now()
		}
	}
}
