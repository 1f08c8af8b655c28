package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// int80 starts the program $1 with the argument $2 by the calls of the architecture i386, and by those of x32.
const int80 = `python3 - "$1" "$2" <<'P'
import ctypes, mmap, sys, struct
m = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
base = ctypes.addressof(ctypes.c_char.from_buffer(m))
def put(at, b): m[at:at+len(b)] = b
put(0x400, sys.argv[1].encode() + b"\0"); put(0x600, sys.argv[2].encode() + b"\0")
put(0x700, struct.pack("<III", base + 0x400, base + 0x600, 0))
put(0, b"\x53\xb8" + struct.pack("<I", 11) + b"\xbb" + struct.pack("<I", base + 0x400) + b"\xb9" + struct.pack("<I", base + 0x700) + b"\x31\xd2\xcd\x80\x5b\xc3")
put(0x100, b"\xb8" + struct.pack("<I", 0x40000000 + 520) + b"\xbf" + struct.pack("<I", base + 0x400) + b"\xbe" + struct.pack("<I", base + 0x700) + b"\x31\xd2\x0f\x05\xc3")
for at in (0, 0x100): print(ctypes.CFUNCTYPE(ctypes.c_int)(base + at)())
P`

// Programs are judged without a sandbox, too, in whatever way they are started.
func TestJudgedOnHost(t *testing.T) {
	if err := sandbox.ExecGateWorks(sandbox.None); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	program, err := os.ReadFile("/usr/bin/touch")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/victim", program, 0o755); err != nil {
		t.Fatal(err)
	}
	r := New(Config{Execs: true, InheritPath: true})
	defer r.Close()
	var refused atomic.Int32 // judges run at the same time
	judge := func(_ context.Context, e *execgate.Exec) execgate.Verdict {
		if e.Unreadable != nil {
			t.Errorf("%s: %v", e.Path, e.Unreadable)
		}
		if last := e.Files[len(e.Files)-1]; filepath.Base(last.Name) == "victim" {
			refused.Add(1)
			return execgate.Verdict{}
		}
		return execgate.Verdict{Allow: true}
	}
	for _, c := range []struct{ script, says string }{
		{`./victim made; echo $?`, "126"},
		{`sh -c './victim made'; env ./victim made; find victim -exec {} made \;`, "denied"},
		{`rm -f ended; (setsid sh -c './victim made; : > ended' &); until [ -e ended ]; do :; done`, ""},
		{`set -- "$PWD/victim" made; ` + int80, "-13"},
	} {
		refused.Store(0)
		res, err := r.Run(t.Context(), Command{Text: c.script, Dir: dir, Gate: judged{judge: judge}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(res.Text, c.says) || refused.Load() == 0 {
			t.Errorf("%s: %d refused, said %q, want %q", c.script, refused.Load(), res.Text, c.says)
		}
		if _, err := os.Lstat(dir + "/made"); err == nil {
			t.Errorf("%s: the program ran", c.script)
		}
	}
	res, err := r.Run(t.Context(), Command{Text: `/bin/echo x; sh -c 'echo y | cat'`, Dir: dir, Gate: judged{judge: judge}})
	if err != nil || res.Text != "x\ny\n" {
		t.Errorf("honest: %q, %v", res.Text, err)
	}
	res, err = r.Run(t.Context(), Command{Text: `/bin/echo x; echo y`, Dir: dir})
	if err != nil || !strings.HasSuffix(res.Text, "y\n") || strings.HasPrefix(res.Text, "x") {
		t.Errorf("without a judge: %q, %v", res.Text, err)
	}
}

// judged is a gate that asks no person.
type judged struct {
	ungated
	judge execgate.Judge
}

func (j judged) Judge(ctx context.Context, e *execgate.Exec) execgate.Verdict {
	return j.judge(ctx, e)
}
