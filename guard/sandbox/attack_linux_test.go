package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

// attack is a script that must neither print the secret or a breach nor change
// what the fixture guards.
type attack struct {
	name   string
	script string
	// real says that outside of a sandbox the script succeeds wherever the test
	// runs, so that the table is known to attack something.
	real bool
}

var attacks = []attack{
	// Reading a denied file by its name, and by all its other names.
	{"cat", `cat .env secrets/k secrets/deep/k conf/.env`, true},
	{"redirection", `read -r x < .env; echo "$x"`, true},
	{"python", `python3 -c 'print(open(".env").read())'`, true},
	{"dd", `dd if=.env status=none; dd if=secrets/k status=none`, true},
	{"grep recursive", `grep -r TOP . "$OUT"`, true},
	{"tar", `tar c .env secrets 2>/dev/null | grep -a TOP`, true},
	{"cp", `cp .env copy; cp -r secrets copies; cat copy copies/k; rm -rf copy copies`, true},
	{"copied binary", `cp /bin/cat "$TMPDIR/dog"; "$TMPDIR/dog" .env`, true},
	{"git hash-object", `git hash-object -w .env 2>&1; git init -q x; cd x; git --no-pager diff --no-index /dev/null ../.env`, true},
	{"symlink", `cat link`, true},
	{"new symlink", `ln -s .env l; cat l; rm l`, true},
	{"dot dot", `cat "$WS/src/../.env"`, true},
	{"double slashes", `cat "/$WS//./.env"`, true},
	{"hard link before the start", `cat hard`, true},
	{"hard link into a denied directory", `cat hard-dir`, true},
	{"new hard link", `ln .env hl && cat hl; rm -f hl`, true},
	{"denied symlink by its target", `cat envlink real/target`, true},
	{"outside of the writable roots", `cat "$OUT/private"`, true},
	{"home secret", `cat "$HOME/.ssh/id" ~/.ssh/id`, true},
	{"state directory", `cat "$STATE/token" "$STATE/results/other/1"; ls "$STATE/results/own/../other"`, true},
	{"proc self root", `cat "/proc/self/root$WS/.env" /proc/self/cwd/.env`, true},
	{"proc of everyone", `for p in /proc/[0-9]*; do cat "$p/root$WS/.env" "$p/cwd/.env"; done`, true},
	{"proc of the host", `cat "/proc/$HOST/root$WS/.env"; tr '\0' '\n' < /proc/$HOST/environ | grep -q . && [ -e "/proc/$HOST/exe" ] && echo BREACH`, true},
	{"proc task", `cat /proc/self/task/*/root"$WS"/.env`, true},
	{"proc map_files", `ls /proc/1/map_files /proc/1/task/1/fd | grep . && cat /proc/1/environ /proc/1/maps && echo BREACH`, false},
	{"chmod of the mask", `chmod 644 .env; chmod 755 secrets; cat .env secrets/k`, true},
	{"mmap", `python3 -c 'import mmap,os; f=os.open(".env",os.O_RDONLY); print(mmap.mmap(f,0,prot=mmap.PROT_READ)[:])'`, true},
	{"sendfile", `python3 -c 'import os; f=os.open(".env",os.O_RDONLY); os.sendfile(1,f,0,99)'`, true},
	{"O_PATH reopened", `python3 -c 'import os; f=os.open(".env",os.O_PATH); print(open("/proc/self/fd/%d"%f).read())'`, true},
	{"execute it", `sh ./.env; . ./.env`, true},
	{"file by handle", `$ATTACK handle "$WS" $HANDLE; $ATTACK handle / $HANDLE; $ATTACK handle /etc $HANDLE`, false},
	{"io_uring", `$ATTACK uring`, true},
	{"listing a masked directory", `ls "$HOME/.ssh" "$STATE/results" | grep -e id -e other && echo BREACH`, true},

	// Taking the mask away, or the file from under it.
	{"umount", `umount "$WS/.env"; umount -l "$WS/.env"; umount -l "$WS/secrets"; cat .env secrets/k`, true},
	{"nested user namespace, umount", `unshare -Urm sh -c 'umount -l .env; cat .env'`, false},
	{"nested user namespace, bind", `unshare -Urm sh -c 'mkdir -p "$TMPDIR/m"; mount --bind "$WS" "$TMPDIR/m" && cat "$TMPDIR/m/.env"'`, false},
	{"nested user namespace, rbind and umount", `unshare -Urm sh -c 'mkdir -p "$TMPDIR/m"; mount --rbind "$WS" "$TMPDIR/m" && umount -l "$TMPDIR/m/.env"; cat "$TMPDIR/m/.env"'`, false},
	{"nested user namespace, move", `unshare -Urm sh -c 'mount --move "$WS/.env" "$TMPDIR/x"; cat .env'`, false},
	{"nested user namespace, overlay", `unshare -Urm sh -c 'cd "$TMPDIR"; mkdir -p u w m; mount -t overlay o -o "lowerdir=$WS,upperdir=u,workdir=w" m && cat m/.env m/hard'`, false},
	{"nested user namespace, proc", `unshare -Urmpf sh -c 'mount -t proc proc /proc && cat "/proc/1/root$WS/.env"'`, false},
	{"every namespace", `$ATTACK unshare`, false},
	{"clone with a user namespace", `$ATTACK clone`, false},
	{"clone a sibling", `exec $ATTACK sibling`, true},
	{"open_tree", `$ATTACK opentree "$WS" .env; unshare -Ur $ATTACK opentree "$WS" .env`, false},
	{"mount", `$ATTACK mount "$WS"`, false},
	{"setns", `$ATTACK setns /proc/$HOST/ns/mnt; $ATTACK setns /proc/1/ns/mnt; $ATTACK setns /proc/1/ns/user`, false},
	{"chroot", `chroot / cat "$WS/.env"; unshare -Ur chroot /proc/self/root cat "$WS/.env"; python3 -c 'import os; os.chroot("."); print("BREACH")'`, false},
	{"rename of a denied file", `mv .env x && cat x`, true},
	{"rename of a denied directory", `mv secrets s && cat s/k`, true},
	{"rename of a parent", `mv conf c && { echo BREACH; cat c/.env; }`, true},
	{"rename over a denied file", `echo x > new; mv -f new .env; rm -f new`, true},
	{"removal", `rm -f .env; rm -rf secrets conf`, true},
	{"exchange", `echo z > zz; $ATTACK exchange zz .env; $ATTACK exchange zz secrets; rm -rf zz`, true},
	{"capabilities", `$ATTACK caps`, true},
	{"setuid program left behind", `cp /bin/true s; chmod u+s s; chmod 4755 s; install -m 4755 /bin/true s2; $ATTACK setuid s3; rm -rf t; mkdir t
mkdir -m 2775 d; touch d/f; chmod g+s d || echo BREACH no setgid directory; chmod -R 2775 d; mkdir d/e
for dir in d d/e; do test -g $dir || echo BREACH $dir lost its bit; done; chmod 755 d/f || echo BREACH; chmod g-s d || echo BREACH
find . \( -perm /6000 ! -type d -o -type c -o -type b \) ! -path './.git/*' | grep . && echo BREACH; rm -rf s s2 s3* d t`, true},
	{"setuid program", `su -c "cat $WS/.env" < /dev/null; sudo -n cat .env`, false},

	// Writing where it is not allowed.
	{"write outside", `echo x > "$OUT/new"; echo x >> "$OUT/public"; echo x >> "$HOME/.profile"; rm -f "$OUT/public"`, true},
	{"write by symlink", `ln -s "$OUT/public" l; echo x >> l; rm -f l`, true},
	{"write into a denied directory", `echo x > secrets/new; echo x > .env; truncate -s 0 .env`, true},
	{"settings", `echo x >> .claude/settings.json; sed -i s/x/y/ .claude/settings.json; rm -f .claude/settings.json`, true},
	{"settings by hard link", `echo x >> hard-settings`, true},
	{"settings, directory renamed", `mv .claude c && mkdir .claude && echo x > .claude/settings.json`, true},
	{"settings, new neighbour", `echo x > .claude/settings.local.json; mkdir .claude/agents`, true},
	{"settings, new hard link", `ln .claude/settings.json h && echo x >> h; rm -f h`, true},
	{"hook", `echo x >> .git/hooks/pre-commit; echo x > .git/hooks/post-checkout; mv .git g`, true},
	{"chmod of protected files", `chmod 777 .claude/settings.json .git/hooks "$OUT/public"; touch -d @0 .claude/settings.json`, true},
	{"extended attributes", `setfattr -n user.x -v y "$OUT/public" && echo BREACH; python3 -c 'import os; os.setxattr("'"$OUT"'/public","user.x",b"y"); print("BREACH")'`, true},
	{"shown result", `echo x >> "$STATE/results/own/1"`, true},
	{"core_pattern", `( : >> /proc/sys/kernel/core_pattern ) && echo BREACH`, false},
	{"sysrq", `( : >> /proc/sysrq-trigger ) && echo BREACH`, false},
	{"writable proc", `find /proc -maxdepth 1 -type f -writable 2>/dev/null | while read -r f; do ( : >> "$f" ) 2>/dev/null && echo BREACH "$f"; done`, false},
	{"kernel settings", `for f in /sys/kernel/mm/ksm/run /sys/power/state /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/cgroup.procs /sys/kernel/uevent_helper; do ( : >> $f ) && echo BREACH $f; done`, false},
	{"disks", `for d in /dev/vd* /dev/sd* /dev/nvme* /dev/mem /dev/kmem /dev/kmsg /dev/fuse /dev/kvm; do ( : < $d ) && echo BREACH $d; done`, false},
	{"device node", `$ATTACK mknod "$WS/disk"; $ATTACK mknod /dev/shm/disk; $ATTACK mknod "$TMPDIR/disk"`, false},
	{"kernel keys", `keyctl show 2>/dev/null | grep -E "[0-9] .*keyring" && echo BREACH`, false},

	// The host and other processes.
	{"ptrace of the host", `$ATTACK ptrace $HOST; $ATTACK readmem $HOST`, false},
	{"ptrace of process 1", `$ATTACK ptrace 1; $ATTACK readmem 1; cat /proc/1/root/etc/passwd && echo BREACH`, false},
	{"signal to the host", `kill -0 $HOST && echo BREACH`, true},
	{"descriptors of the host", `for f in /proc/$HOST/fd/*; do ( : > $f ) && echo BREACH $f; done; exit 0`, false},
	{"inherited descriptors", `for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 ] && [ $n -ne 255 ] && case $(readlink $f) in ''|/proc/*) ;; *) echo BREACH $f $(readlink $f);; esac; done`, false},
	{"environment of process 1", `tr '\0' '\n' < /proc/1/environ && echo BREACH`, false},

	// The network and sockets.
	{"loopback", `exec 3<>/dev/tcp/127.0.0.1/$PORT; timeout 5 cat <&3`, true},
	{"loopback by name", `$ATTACK connect tcp localhost:$PORT; curl -s --noproxy '*' -m 2 http://$TCP/`, true},
	{"abstract socket", `$ATTACK connect unix "@$ABSTRACT"`, true},
	{"path socket outside", `$ATTACK connect unix "$SOCKET"`, true},
	{"path socket in the workspace", `$ATTACK connect unix "$SOCKET2"; ln -s agent.sock s; $ATTACK connect unix s; mv agent.sock b && $ATTACK connect unix b`, true},
	{"path socket through proc", `$ATTACK connect unix "/proc/self/root$SOCKET"`, true},
	{"vsock", `$ATTACK vsock`, false},
	{"other families", `python3 -c '
import socket
for f in range(3, 45):
    if f in (10, 16): continue
    for k in (1, 2, 3, 5):
        try: socket.socket(f, k); print("BREACH family", f, k)
        except OSError: pass'`, false},
	{"raw sockets", `python3 -c '
import socket
for f, k, p in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 255)):
    try: socket.socket(f, k, p); print("BREACH raw")
    except OSError: pass'; ip link add d type dummy && echo BREACH`, false},

	// The system call filter.
	{"x32", `$ATTACK x32`, false},
	{"lease", `$ATTACK lease "$WS/src/main.go"; $ATTACK lease "$OUT/public"; $ATTACK lease "$WS"`, true},
	{"32-bit datagram socket", `python3 - <<'P'
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(b"\x53\xb8\x67\x01\0\0\xbb\x01\0\0\0\xb9\x02\0\0\0\x31\xd2\xcd\x80\x5b\xc3")  # socket(AF_UNIX, SOCK_DGRAM, 0) by int 0x80
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print("BRE" + "ACH" if f() > 0 else "no")
P`, false},
	{"typing into the terminal", `$ATTACK tiocsti`, false},
	{"32-bit call", `python3 - <<'P'
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=7)
m.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, getpid; int 0x80; ret
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print("BRE" + "ACH" if f() > 0 else "no")
P`, false},
}

// available returns the backends that work here, each with a sandbox started
// for the fixture.
func available(t *testing.T, f *fixture) map[Backend]*Sandbox {
	t.Helper()
	list := make(map[Backend]*Sandbox)
	for _, b := range backendsUnderTest() {
		if s := f.start(t, b); s != nil {
			list[b] = s
		}
	}
	if len(list) == 0 {
		t.Skip("nothing on this kernel contains commands")
	}
	return list
}

// overlaidBackend is [Namespaces] where commands write in overlays.
const overlaidBackend Backend = "overlays"

// ownedBackend is [Namespaces] where the workspace belongs to a user that is not root, and commands are root's.
const ownedBackend Backend = "owners"

// start starts a sandbox with a backend; nil: it is not available.
func (f *fixture) start(t *testing.T, b Backend) *Sandbox {
	t.Helper()
	if b == overlaidBackend || b == ownedBackend {
		b = Namespaces
	}
	s, err := Start(context.Background(), f.policy(), Options{Backends: []Backend{b}})
	if errors.Is(err, ErrUnavailable) {
		t.Logf("skipping %s: %v", b, err)
		return nil
	}
	if err != nil {
		t.Fatalf("Start with %s: %v", b, err)
	}
	t.Cleanup(func() { s.Close() })
	if f.overlay && s.NoOverlay() != nil {
		t.Logf("skipping overlays: %v", s.NoOverlay())
		return nil
	}
	return s
}

func TestAttacks(t *testing.T) {
	slow(t)
	for _, backend := range append(backendsUnderTest(), overlaidBackend, ownedBackend) {
		if raceEnabled && backend != Namespaces {
			continue
		}
		f := newFixture(t)
		f.overlay = backend == overlaidBackend
		if backend == ownedBackend && !testenv.HasUsers(t) {
			continue
		}
		f.serve(t)
		f.lend(t)
		f.env = append(f.env, "HANDLE="+handleOf(t, f.ws+"/.env"))
		if backend == ownedBackend {
			giveAway(t, f.ws)
		}
		s := f.start(t, backend)
		if s == nil {
			continue
		}
		some := attacks
		if backend != Namespaces { // the others hold a part of it, or are variants of it
			some = samples.Of(attacks, 1)
		}
		before := f.snapshot(t)
		for _, a := range some {
			t.Run(string(backend)+"/"+a.name, func(t *testing.T) {
				if why := knownGaps[backend][a.name]; why != "" {
					t.Skip("known gap: " + why)
				}
				r := runIn(t, s, f.ws, f.env, "/bin/bash", "-c", a.script)
				if strings.Contains(r.output, secret) || strings.Contains(r.output, breach) {
					t.Errorf("got through:\n%s", r.output)
				}
				if diff := cmp.Diff(before, f.snapshot(t)); diff != "" {
					t.Errorf("changed what is guarded (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// knownGaps are attacks a backend does not hold against, and why.
var knownGaps = map[Backend]map[string]string{backendLandlock: gaps(
	"Landlock cannot take a path out of a writable directory",
	"cat", "redirection", "python", "dd", "grep recursive", "tar", "cp", "copied binary", "git hash-object", "symlink",
	"new symlink", "dot dot", "double slashes", "hard link before the start", "hard link into a denied directory",
	"new hard link", "denied symlink by its target", "proc self root", "proc of everyone", "proc task",
	"chmod of the mask", "mmap", "sendfile", "O_PATH reopened", "execute it", "umount", "rename of a denied file",
	"rename of a denied directory", "rename of a parent", "rename over a denied file", "removal", "exchange",
	"write into a denied directory", "settings", "settings by hard link", "settings, directory renamed",
	"settings, new neighbour", "settings, new hard link", "hook", "descriptor in a socket",
).and(
	"Landlock knows no right for names, permissions and attributes",
	"listing a masked directory", "chmod of protected files", "extended attributes",
), ownedBackend: gaps("TestOwners says which capabilities these commands have, and for which files", "capabilities")}

type gapList map[string]string

func gaps(why string, names ...string) gapList { return gapList{}.and(why, names...) }

func (g gapList) and(why string, names ...string) gapList {
	for _, n := range names {
		g[n] = why
	}
	return g
}

// handleOf returns the kind and the handle of a file, which open_by_handle_at
// opens without a path.
func handleOf(t *testing.T, path string) string {
	t.Helper()
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		t.Logf("no file handles here: %v", err)
		return "0 00"
	}
	return fmt.Sprintf("%d %x", h.Type(), h.Bytes())
}

// backendsVariable limits the tests to some backends, separated by commas.
const backendsVariable = "TOOLHOST_TEST_BACKENDS"

// backendsUnderTest are the backends of this system that the tests are about.
func backendsUnderTest() []Backend {
	names := os.Getenv(backendsVariable)
	if names == "" {
		return platformBackends
	}
	return slices.DeleteFunc(slices.Clone(platformBackends), func(b Backend) bool {
		return !slices.Contains(strings.Split(names, ","), string(b))
	})
}

// slow skips a test with -short, but not in the run as an ordinary user, which shortens tests only.
func slow(t *testing.T) {
	if testing.Short() && os.Getenv(backendsVariable) == "" {
		t.Skip("slow")
	}
}
