import os, socket, threading, time
def server(name, backlog):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(backlog); return s
for n in "full", "free":
    if os.path.exists(n): os.unlink(n)
full, free = server("full", 0), server("free", 9)
first = socket.socket(socket.AF_UNIX); first.connect("full")
threading.stack_size(1 << 16)
for i in range(1000):
    threading.Thread(target=lambda: socket.socket(socket.AF_UNIX).connect("full"), daemon=True).start()
c = socket.socket(socket.AF_UNIX); c.connect("free")
print("waiting, and through", flush=True)
time.sleep(1000)
