package ownprocess

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestUnchanged(t *testing.T) {
	const smaps = `00400000-01a30000 r-xp 00000000 08:02 173521                             /usr/bin/tool host
Size:              22720 kB
Rss:                9120 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01a30000-01a40000 r--p 01630000 08:02 173521                             /usr/bin/tool host
Rss:                  64 kB
Anonymous:            64 kB
01a40000-01a50000 rw-p 01640000 08:02 173521                             /usr/bin/tool host
Anonymous:             0 kB
01a50000-01a60000 r--p 01650000 08:02 173521                             /usr/bin/tool host
Anonymous:             0 kB
7f0000000000-7f0000010000 r--p 00000000 08:02 99                         /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000020000-7f0000030000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
Anonymous:            12 kB
`
	got, err := unchanged(strings.NewReader(smaps), "/usr/bin/tool host")
	if want := []span{{0x400000, 0x1a30000}, {0x1a50000, 0x1a60000}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	if got, err := unchanged(strings.NewReader("what is this\n"), "/usr/bin/toolhost"); err == nil {
		t.Errorf("got %x of what is no map", got)
	}
}

// TestReleaseProgram has this process release its program: it goes on, with less memory.
func TestReleaseProgram(t *testing.T) {
	before := resident(t)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d kB of files are mapped, %d before", after, before)
	}
}

// resident is how much of files is in the memory of this process, in kB.
func resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if of == nil {
		t.Skip("this kernel does not tell RssFile")
	}
	size, _ := strconv.Atoi(string(of[1]))
	return size
}
