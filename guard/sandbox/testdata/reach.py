import ctypes, os, socket, struct, sys, threading
target = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
def address(path): return struct.pack("H", 1) + os.fsencode(path) + b"\0"
def attempt(name, f):
    try: r = f()
    except Exception as e: print(name, "failed:", e); return
    print(name, "BREACH" if r in (None, True) or isinstance(r, int) and r >= 0 else "failed")
kept = []
def stream(): kept.append(socket.socket(socket.AF_UNIX)); return kept[-1]
def at(dir, f):
    old = os.getcwd(); os.chdir(dir)
    try: return f()
    finally: os.chdir(old)
dir, base = os.path.split(target)
attempt("absolute", lambda: stream().connect(target))
attempt("packets", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(target))
attempt("relative", lambda: at(dir, lambda: stream().connect(base)))
attempt("dots", lambda: at(dir, lambda: stream().connect("./../" + os.path.basename(dir) + "//" + base)))
attempt("through root", lambda: stream().connect("/proc/self/root" + target))
attempt("through cwd", lambda: at(dir, lambda: stream().connect("/proc/self/cwd/" + base)))
attempt("through thread", lambda: at(dir, lambda: stream().connect("/proc/thread-self/cwd/" + base)))
attempt("through a directory", lambda: stream().connect("/proc/self/fd/%d/%s" % (os.open(dir, os.O_RDONLY), base)))
attempt("through dev", lambda: stream().connect("/dev/fd/%d/%s" % (os.open(dir, os.O_RDONLY), base)))
attempt("through itself", lambda: stream().connect("/proc/self/fd/%d" % os.open(target, os.O_PATH)))
def symlink(): os.symlink(target, "l"); return stream().connect("l")
attempt("symlink", symlink)
def hardlink(): os.link(target, "h"); return stream().connect("h")
attempt("hard link", hardlink)
def renamed():
    os.rename(target, target + ".r")
    try: return stream().connect(target + ".r")
    finally: os.rename(target + ".r", target)
attempt("renamed", renamed)
def over():
    s = stream(); s.bind("o"); s.listen()
    os.rename(target, "o")
    try: return stream().connect("o")
    finally: os.rename("o", target)
attempt("renamed over an own socket", over)
attempt("longest address", lambda: libc.connect(stream().fileno(), address("/" * (108 - len(target)) + target)[:110], 110))
attempt("no end", lambda: libc.connect(stream().fileno(), address(target)[:-1], len(target) + 2))
# Datagrams, with and without connect.
for kind in socket.SOCK_DGRAM, socket.SOCK_RAW:
    attempt("datagram socket", lambda: socket.socket(socket.AF_UNIX, kind).sendto(b"sendto", target))
    attempt("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"sendto", target))
    attempt("datagram pair, connected", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].connect(target))
a = address(target)
def sends(name, fd):
    def msg():
        iov = ctypes.create_string_buffer(struct.pack("PL", ctypes.addressof(data), 4))
        return struct.pack("PIxxxxPLPLixxxx", ctypes.addressof(buf), len(a), ctypes.addressof(iov), 1, 0, 0, 0), iov
    data, buf = ctypes.create_string_buffer(b"byte"), ctypes.create_string_buffer(a)
    attempt("sendto " + name, lambda: libc.sendto(fd, data, 4, 0, a, len(a)))
    m, keep = msg()
    attempt("sendmsg " + name, lambda: libc.sendmsg(fd, m, 0))
    attempt("sendmmsg " + name, lambda: libc.sendmmsg(fd, ctypes.create_string_buffer(m + struct.pack("Ixxxx", 0)), 1, 0))
    attempt("fastopen " + name, lambda: libc.sendto(fd, data, 4, 0x20000000, a, len(a)))
loud = attempt
u, t, s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(), stream()
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
for kind in socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
    if kind == socket.SOCK_SEQPACKET: attempt = lambda name, f: f() # sends to its other end; the server tells
    pair = (ctypes.c_int * 2)(-1, -1)
    libc.socketpair(1, int(kind), 0, pair)
    sends("pair of %d" % kind, pair[0])
attempt = loud
sends("udp", u.fileno()); sends("tcp", t.fileno()); sends("stream", s.fileno())
attempt("udp", lambda: libc.connect(u.fileno(), a, len(a)))
attempt("tcp", lambda: libc.connect(t.fileno(), a, len(a)))
attempt("netlink", lambda: libc.connect(n.fileno(), a, len(a)))
# io_uring, and descriptors of others.
attempt("io_uring", lambda: libc.syscall(425, 8, ctypes.create_string_buffer(120)))
attempt("pidfd_getfd", lambda: libc.syscall(438, os.pidfd_open(os.getpid()), 1, 0))
# A program that cannot be looked at.
def hidden():
    libc.prctl(4, 0)
    return libc.connect(stream().fileno(), a, len(a))
attempt("not dumpable", hidden)
def unshared():
    r = []
    def f():
        libc.unshare(0x600) # files and directories of its own
        os.chdir(dir)
        b = address(base)
        r.append(libc.connect(stream().fileno(), b, len(b)))
    th = threading.Thread(target=f); th.start(); th.join()
    return r[0]
attempt("thread of its own", unshared)
def orphan():
    # The first thread ends, another connects.
    pid = os.fork()
    if pid == 0:
        def f():
            import time; time.sleep(.05)
            os._exit(0 if libc.connect(stream().fileno(), a, len(a)) == 0 else 1)
        threading.Thread(target=f).start()
        libc.syscall(60, 0)
    return True if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 else False
attempt("without its first thread", lambda: orphan() or -1)
