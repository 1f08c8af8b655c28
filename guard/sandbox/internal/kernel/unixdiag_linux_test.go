package kernel

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A socket is found by its inode under every name, while somebody listens.
func TestHas(t *testing.T) {
	table, err := OpenSocketTable()
	if err != nil {
		t.Skip(err)
	}
	defer table.Close()
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "relative")
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	var st unix.Stat_t
	for _, err := range []error{os.Link("relative", "link"), os.Remove("relative"), os.Rename("link", "renamed"),
		unix.Stat("renamed", &st)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	file := SocketFileOf(st.Dev, st.Ino)
	if found, err := table.Has(file); !found || err != nil {
		t.Errorf("Has = %v, %v of a socket that listens", found, err)
	}
	for range 300 { // more than fit into one part of an answer
		more, err := net.Listen("unix", "")
		if err != nil {
			t.Fatal(err)
		}
		defer more.Close()
	}
	if found, err := table.Has(file); !found || err != nil {
		t.Errorf("Has = %v, %v among others", found, err)
	}
	l.Close()
	if found, err := table.Has(file); found || err != nil {
		t.Errorf("Has = %v, %v of a socket that was closed", found, err)
	}
	table.Close()
	if found, err := table.Has(file); found || err == nil {
		t.Errorf("Has = %v, %v of a closed table", found, err)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte{16, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		(&SocketTable{last: 1}).messages(data, func(body []byte) { socket(body, func(SocketFile) {}) })
	})
}
