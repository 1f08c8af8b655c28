package sandbox

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Init(os.Args)
	os.Exit(m.Run())
}

func run(t testing.TB, s *Sandbox, dir string, script string) (string, Status) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Spawn(Spec{Argv: []string{"/bin/bash", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	st, err := p.Wait()
	if err != nil {
		t.Error(err)
	}
	n, err := p.Kill()
	t.Log("ended", n, err)
	io.Copy(&b, r)
	return b.String(), st
}

func TestSmoke(t *testing.T) {
	ws := t.TempDir()
	os.WriteFile(ws+"/.env", []byte("TOPSECRET\n"), 0o644)
	t0 := time.Now()
	s, err := Start(context.Background(), Policy{Writable: []string{ws}, Denied: []string{ws + "/.env"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("start", time.Since(t0))
	out, st := run(t, s, ws, "cat .env; id; grep -E 'Cap|NoNew|Secc' /proc/self/status; ls /proc/1/root /proc/1/fd; ls -la /dev; umount .env; unshare -Ur true; unshare -u true; ps aux; echo x > /proc/self/comm; cat /proc/self/mountinfo | tail -20; setsid sleep 100 & ")
	t.Log(out, st)
	t0 = time.Now()
	t.Log(s.Close(), time.Since(t0))
}

func BenchmarkSpawn(b *testing.B) {
	ws := b.TempDir()
	s, err := Start(context.Background(), Policy{Writable: []string{ws}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		p, err := s.Spawn(Spec{Argv: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
		p.Kill()
	}
}
