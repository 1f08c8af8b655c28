//go:build slow

package sandbox

import (
	"strings"
	"testing"
)

// What is not refused runs as if nothing looked on.
func TestExecGateHonest(t *testing.T) {
	slow(t)
	f := newFixture(t)
	f.victim(t)
	gated(t, f, func(t *testing.T, s *Sandbox) {
		for _, c := range []struct{ script, want string }{
			{`echo a | cat | tr a b`, "b\n"},
			{`sh -c 'exit 3'; echo $?`, "3\n"},
			{`nosuchprogram; echo $?`, "/bin/bash: line 1: nosuchprogram: command not found\n127\n"},
			{`./src/main.go; echo $?`, "/bin/bash: line 1: ./src/main.go: Permission denied\n126\n"},
			{`/etc; echo $?`, "/bin/bash: line 1: /etc: Is a directory\n126\n"},
			{`printf 'echo plain $1' > p; chmod +x p; ./p x; rm p`, "plain x\n"},
			{`printf '#!/bin/sh\necho $0 $@' > p; chmod +x p; ./p x y; cd src; ../p; PATH=$WS p; rm ../p`, "./p x y\n../p\n$WS/p\n"},
			{`printf '#!/nosuch\n' > p; chmod +x p; python3 -c 'import os
try: os.execv("./p", ["p"])
except OSError as e: print(e.errno)'; rm p`, "2\n"},
			{`python3 -c 'import os
try: os.execv("./src/../", ["p"])
except OSError as e: print(e.errno)'`, "13\n"},
			{`find /etc/passwd -exec echo {} +; xargs -n1 echo <<< "a b"`, "/etc/passwd\na\nb\n"},
			{`$LOADER /bin/echo x`, "x\n"},
			{`/proc/self/exe -c 'echo x'`, "x\n"},
			{`timeout 0.1 sleep 5; echo $?`, "124\n"},
			{`python3 -c 'import subprocess; print(subprocess.check_output(["echo","x"]))'`, "b'x\\n'\n"},
			{`set -- $(seq 100000); /bin/echo $# "$@" | wc -w; /bin/echo "$(head -c 100000 /dev/zero | tr '\0' x)" | wc -c`, "100001\n100001\n"},
			{`/bin/printf '%s\n' $'\xff\xfe' | od -An -tx1`, " ff fe 0a\n"},
		} {
			for _, confirm := range []bool{false, true} {
				r := newRefuser(t, f.ws+"/victim")
				r.confirm = confirm
				got := runGated(t, s, f, r.judge, c.script)
				if want := strings.ReplaceAll(c.want, "$WS", f.ws); got.output != want || len(r.failed) > 0 {
					t.Errorf("%s, confirm %v: %q %q, want %q", c.script, confirm, got.output, r.failed, want)
				}
			}
		}
	})
}
