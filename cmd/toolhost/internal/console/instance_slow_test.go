//go:build slow

package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/mcpserver"
)

// TestForward carries a socket to a port, and ends with the host.
func TestForward(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	home, err := os.MkdirTemp("", "c") // the paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	c := New(false)
	cfg := mcpserver.Config{Roots: []string{t.TempDir()}, StateDir: filepath.Join(home, "s")}
	c.Watch(&cfg)
	host, err := mcpserver.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	log := slog.New(slog.DiscardHandler)
	site, err := c.Open(host, Config{StateDir: cfg.StateDir, Kind: "stdio", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- site.Serve(ctx) }()

	all, err := Find(cfg.StateDir)
	if err != nil || len(all) != 1 || all[0].URL != "" {
		t.Fatalf("found %+v, %v", all, err)
	}
	f, err := Forward(all[0], nil, AnyLoopback(), log)
	if err != nil {
		t.Fatal(err)
	}
	carried := make(chan error, 1)
	go func() { carried <- f.Serve(context.Background()) }()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/enter": http.StatusOK, "/": http.StatusUnauthorized} {
		resp, err := web.Get(f.URL() + path)
		if status, _ := read(t, resp, err); status != want {
			t.Errorf("%s was answered by %d, want %d", path, status, want)
		}
	}
	req, err := http.NewRequest(http.MethodGet, f.URL()+"/enter", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	resp, err := web.Do(req)
	if status, _ := read(t, resp, err); status != http.StatusMisdirectedRequest {
		t.Errorf("a name that was rebound was answered by %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-carried; !errors.Is(err, ErrHostEnded) {
		t.Errorf("the forwarder ended with %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(cfg.StateDir, Folder)); err != nil || len(left) != 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
