package memory

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestControlGroup(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64 // 0: none
	}{
		{"nothing is told", nil, 0},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000\n"}, 1000},
		{"version 2 without a limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"a group above", map[string]string{"proc/self/cgroup": "0::/a/b/c\n", "sys/fs/cgroup/a/memory.max": "500", "sys/fs/cgroup/a/b/c/memory.max": "1000"}, 500},
		{"a group whose path is not mounted", map[string]string{"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/memory.max": "700"}, 700},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpu,memory:/p\n4:pids:/\n", "sys/fs/cgroup/memory/p/memory.limit_in_bytes": "2000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2000},
		{"both", map[string]string{"proc/self/cgroup": "4:memory:/p\n0::/\n", "sys/fs/cgroup/memory/p/memory.limit_in_bytes": "2000", "sys/fs/cgroup/unified/memory.max": "1500"}, 1500},
		{"no number", map[string]string{"proc/self/cgroup": "0::/\nnonsense\n", "sys/fs/cgroup/memory.max": "many"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := controlGroup(root); got.bytes != tt.want || (got.name == "") != (tt.want == 0) {
			t.Errorf("%s: %+v, want %d", tt.name, got, tt.want)
		}
	}
}

func TestTake(t *testing.T) {
	defer func() { bound = limit{} }()
	bound = limit{}
	if release, err := Take(1 << 40); err != nil {
		t.Error(err)
	} else {
		release()
	}
	bound = within(limit{96 << 20, "a limit"})
	if most := Most(1 << 30); most != bound.bytes/4 {
		t.Errorf("one thing may take %d of %d", most, bound.bytes)
	}
	var large *TooLargeError
	if _, err := Take(80 << 20); !errors.As(err, &large) || large.Left != bound.bytes-leastHeap {
		t.Errorf("80 MiB: %v", err)
	}
	first, err := Take(20 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(20 << 20); !errors.As(err, &large) {
		t.Errorf("as much again: %v", err)
	}
	first()
	if _, err := Take(20 << 20); err != nil {
		t.Errorf("after the first was given back: %v", err)
	}
	if taken.Store(0); within(limit{1, "tiny"}).bytes < leastHeap {
		t.Error("a tiny limit leaves nothing")
	}
}
