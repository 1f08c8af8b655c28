package sandbox

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// recallTime is how long a trial that held everything counts for other hosts. A machine that cannot start such a
// sandbox any more is noticed at the start, which forgets the trial.
const recallTime = time.Hour

// heldFile returns the path of the file that says that a trial held everything, and the text that it has if the trial
// was of this program, with the rights of this process, since the machine was started.
func heldFile() (path string, now []byte) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil
	}
	about := sha256.New()
	var exe unix.Stat_t
	if unix.Stat("/proc/self/exe", &exe) != nil {
		return "", nil
	}
	fmt.Fprintln(about, exe.Dev, exe.Ino, exe.Size, exe.Mtim)
	for _, name := range []string{"user", "mnt", "pid", "net"} {
		to, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return "", nil
		}
		fmt.Fprintln(about, to)
	}
	for _, name := range []string{"sys/kernel/random/boot_id", "sys/user/max_user_namespaces",
		"sys/kernel/unprivileged_userns_clone",
		"sys/kernel/apparmor_restrict_unprivileged_userns", "self/attr/current", "self/status"} {
		text, _ := os.ReadFile("/proc/" + name) // a setting that the system does not have cannot change
		for line := range bytes.Lines(text) {
			if key, _, found := bytes.Cut(line, []byte(":\t")); !found ||
				bytes.Contains([]byte(" Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters "),
					[]byte(" "+string(key)+" ")) {
				about.Write(line)
			}
		}
	}
	return filepath.Join(cache, "toolhost", "probe", "held"), fmt.Appendf(nil, "%x\n", about.Sum(nil))
}

// recalled reports whether an earlier trial has shown that namespaces hold everything here.
func recalled() (r Report, known bool) {
	path, now := heldFile()
	if path == "" {
		return r, false
	}
	f, err := os.OpenFile(path, os.O_RDWR|privatefile.NoFollow, 0) // else it makes a trial of its own
	if err != nil {
		return r, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()).Abs() > recallTime {
		return r, false
	}
	was := make([]byte, len(now)+1)
	n, _ := f.Read(was)
	return namespaceReport(), bytes.Equal(was[:n], now)
}

// remember keeps the result of a trial.
func remember(r Report) {
	path, now := heldFile()
	if path == "" {
		return
	}
	if held := namespaceReport(); held.Enforces.all() && reflect.DeepEqual(r, held) {
		_ = privatefile.ReplaceQuickly(path, now) // else the next host tries
	} else {
		_ = os.Remove(path)
	}
}
