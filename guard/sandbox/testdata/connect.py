import ctypes, errno, os, select, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
U, I = socket.AF_UNIX, socket.AF_INET
def say(name, f):
    try: r = f()
    except OSError as e: r = errno.errorcode.get(e.errno, e.errno) if e.errno else type(e).__name__
    print(name, r, flush=True)
def raw(fd, a, n):
    ctypes.set_errno(0)
    r = libc.connect(fd, a, n)
    return "ok" if r == 0 else errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno())
def A(p): return struct.pack("H", 1) + os.fsencode(p) + b"\0"
for n in ("u","v","d","l","loop","deep"):
    try: os.unlink(n)
    except OSError: pass
srv = socket.socket(U); srv.bind("u"); srv.listen(1)
def ok(path, t=socket.SOCK_STREAM): 
    c = socket.socket(U, t); c.connect(path); srv.accept(); return "ok"
say("plain", lambda: ok("u"))
say("missing", lambda: ok("nix"))
say("not a directory", lambda: ok("u/x"))
say("slash", lambda: ok("u/"))
say("empty dir", lambda: ok("./"))
say("regular", lambda: ok("/etc/passwd"))
say("directory", lambda: ok("/etc"))
say("type", lambda: ok("u", socket.SOCK_SEQPACKET))
os.symlink("loop", "loop"); say("loop", lambda: ok("loop"))
os.symlink("u", "l"); say("link", lambda: ok("l"))
say("long name", lambda: ok("x" * 300))
s = socket.socket(U)
say("bad fd", lambda: raw(999, A("u"), 3+2))
say("neg fd", lambda: raw(-1, A("u"), 3+2))
say("file", lambda: raw(os.open("/etc/passwd", 0), A("u"), 3))
say("o_path", lambda: raw(os.open("/etc/passwd", os.O_PATH), A("u"), 3))
say("null", lambda: raw(s.fileno(), None, 4))
say("bad pointer", lambda: raw(s.fileno(), ctypes.c_void_p(1), 4))
say("zero", lambda: raw(s.fileno(), A("u"), 0))
say("two", lambda: raw(s.fileno(), A("u"), 2))
say("negative", lambda: raw(s.fileno(), A("u"), -1))
say("huge", lambda: raw(s.fileno(), A("u"), 129))
say("111", lambda: raw(s.fileno(), A("u").ljust(200, b"\0"), 111))
say("unspec", lambda: raw(s.fileno(), b"\0"*16, 16))
say("wrong family", lambda: raw(s.fileno(), struct.pack("H", 2) + b"\0"*14, 16))
say("padded", lambda: raw(s.fileno(), A("u").ljust(110, b"\0"), 110)); srv.accept()
say("again", lambda: raw(s.fileno(), A("u"), 4))
say("listening", lambda: raw(srv.fileno(), A("u"), 4))
b = socket.socket(U); b.bind("v"); say("not listening", lambda: ok("v")); b.close(); say("dead", lambda: ok("v"))
say("abstract missing", lambda: ok("\0nix"))
ab = socket.socket(U); ab.bind("\0here"); ab.listen(1); say("abstract", lambda: [socket.socket(U).connect("\0here"), ab.accept()] and "ok")
say("peer", lambda: [(c := socket.socket(U)).connect("u"), struct.unpack("iii", srv.accept()[0].getsockopt(socket.SOL_SOCKET, 17, 12))[1:]][1])
q = socket.socket(U, socket.SOCK_SEQPACKET); q.bind("d"); q.listen(1)
say("packets", lambda: [socket.socket(U, socket.SOCK_SEQPACKET).connect("d"), q.accept()] and "ok")
os.chmod("u", 0); say("mode", lambda: "ok" if os.getuid() == 0 else ok("u")); os.chmod("u", 0o777)
libc.prctl(4, 0); say("not dumpable", lambda: ok("u")); libc.prctl(4, 1)
# TCP
t = socket.create_server(("127.0.0.1", 0)); ta = t.getsockname()
def T(): 
    c = socket.socket(); c.connect(ta); t.accept(); return c
say("tcp", lambda: T() and "ok")
free = socket.create_server(("127.0.0.1", 0)); fa = free.getsockname(); free.close()
say("tcp refused", lambda: socket.socket().connect(fa))
c = T(); say("tcp again", lambda: c.connect(ta))
say("tcp unspec", lambda: raw(c.fileno(), b"\0"*16, 16))
say("tcp after unspec", lambda: c.connect(ta)); t.accept()
say("tcp short", lambda: raw(socket.socket().fileno(), struct.pack("H", 2), 2))
n = socket.socket(); n.setblocking(False); say("nonblocking", lambda: n.connect(ta))
say("nonblocking ready", lambda: (select.select([], [n], [], 5)[1] == [n], n.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))); t.accept()
n = socket.socket(); n.setblocking(False); n.connect_ex(fa); 
say("nonblocking refused", lambda: (select.select([], [n], [], 5)[1] == [n], errno.errorcode[n.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)]))
x = socket.socket(socket.AF_INET6); x.bind(("::1", 0)); x.listen(); say("tcp6", lambda: socket.socket(socket.AF_INET6).connect(x.getsockname()))
u1 = socket.socket(I, socket.SOCK_DGRAM); u2 = socket.socket(I, socket.SOCK_DGRAM); u2.bind(("127.0.0.1", 0))
say("udp", lambda: [u1.connect(u2.getsockname()), u1.send(b"x"), u2.recv(1)][-1])
say("udp unspec", lambda: raw(u1.fileno(), b"\0"*16, 16)); say("udp peer", lambda: u1.getpeername())
nl = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
say("netlink", lambda: raw(nl.fileno(), struct.pack("HHII", 16, 0, 0, 0), 12))
say("netlink family", lambda: raw(nl.fileno(), struct.pack("HHII", 1, 0, 0, 0), 12))
# waiting
srv2 = socket.socket(U); os.path.exists("w") and os.unlink("w"); srv2.bind("w"); srv2.listen(0)
first = socket.socket(U); first.connect("w")
n = socket.socket(U); n.setblocking(False); say("full, nonblocking", lambda: n.connect("w"))
n = socket.socket(U); n.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000)); 
b0 = time.time(); say("full, with a limit", lambda: raw(n.fileno(), A("w"), 4)); print("limit kept", .15 < time.time() - b0 < 5)
def later(): time.sleep(.3); srv2.accept(); time.sleep(.3); srv2.accept()
th = threading.Thread(target=later); th.start()
say("full, waiting", lambda: socket.socket(U).connect("w")); th.join()
def alarm(*_): raise TimeoutError
signal.signal(signal.SIGALRM, alarm)
for restart in False, True:
    srv2.close(); os.unlink("w"); srv2 = socket.socket(U); srv2.bind("w"); srv2.listen(0)
    first = socket.socket(U); first.connect("w")
    hit = []
    if restart: signal.signal(signal.SIGALRM, lambda *_: hit.append(1)); signal.siginterrupt(signal.SIGALRM, False); 
    else: signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, .2)
    if restart: th = threading.Thread(target=lambda: (time.sleep(.6), srv2.accept())); th.start()
    n = socket.socket(U)
    say("alarm restart=%s" % restart, lambda: raw(n.fileno(), A("w"), 4) if restart else n.connect("w"))
# killed while waiting
for sig in signal.SIGKILL, signal.SIGTERM:
    pid = os.fork()
    if pid == 0:
        socket.socket(U).connect("w"); os._exit(0)
    time.sleep(.2); os.kill(pid, sig); say("killed", lambda: os.waitpid(pid, 0)[1])
# tcp full backlog blocking -> waiting in SYN state
t2 = socket.create_server(("127.0.0.1", 0), backlog=0); ta2 = t2.getsockname()
held = []
while len(held) < 20:
    h = socket.socket(); h.setblocking(False); h.connect_ex(ta2); held.append(h)
w = socket.socket(); w.settimeout(None); w.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300000))
say("tcp, waiting with a limit", lambda: w.connect(ta2))
say("flags kept", lambda: (os.get_blocking(w.fileno()), os.get_blocking(n.fileno())))
say("chdir deleted", lambda: [os.mkdir("deep"), os.chdir("deep"), os.rmdir("../deep"), ok("u")])
