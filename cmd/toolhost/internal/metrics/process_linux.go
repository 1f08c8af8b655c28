package metrics

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ticks is how many units of time in /proc are a second: USER_HZ is 100 on every machine on which Go runs Linux
// programs.
const ticks = 100

// Fields of /proc/self/stat after the name of the program, counted from the state; see proc_pid_stat(5).
const (
	fieldStart   = 19
	fieldVirtual = 20
	fieldRSS     = 21
)

// writeProcess writes the kernel's figures for this process. Figures that cannot be read are left out.
func writeProcess(p *page) {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		p.one(procCPU, seconds(used.Utime)+seconds(used.Stime))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.one(procFDs, float64(len(open)))
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		p.one(procMaxFDs, float64(limit.Cur))
	}
	stat, err := os.ReadFile("/proc/self/stat")
	_, rest, ok := bytes.Cut(stat, []byte(") ")) // the program's name contains no parenthesis
	fields := bytes.Fields(rest)
	if err != nil || !ok || len(fields) <= fieldRSS {
		return
	}
	field := func(i int) float64 {
		v, _ := strconv.ParseFloat(string(fields[i]), 64) // the kernel writes numbers
		return v
	}
	p.one(procRSS, field(fieldRSS)*float64(os.Getpagesize()))
	p.one(procVirtual, field(fieldVirtual))
	if boot, ok := bootTime(); ok {
		p.one(procStart, boot+field(fieldStart)/ticks)
	}
}

func seconds(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// bootTime returns when the machine was started, in seconds since 1970.
func bootTime() (float64, bool) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(raw, []byte("\nbtime "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	v, err := strconv.ParseFloat(string(line), 64)
	return v, ok && err == nil
}
