package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

func TestFind(t *testing.T) {
	state := t.TempDir()
	if all, err := Find(state); err != nil || len(all) != 0 {
		t.Errorf("without any console: %v, %v", all, err)
	}
	var open []*instanceFile
	for _, id := range []string{"bb", "aa"} {
		r, err := openInstanceFile(state, Instance{ID: id, Began: time.Now(), Code: "code of " + id})
		if err == nil {
			err = r.write()
		}
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	dir := filepath.Join(state, Folder)
	for name, content := range map[string]string{
		"dead.json": `{"id":"dead"}`, "dead.lock": "", "dead.sock": "", "half.json": `{"id":`, "other.json": `{"id":"../x"}`, "note.txt": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Find(state)
	if err != nil || len(all) != 2 || all[0].ID != "bb" || all[1].Code != "code of aa" {
		t.Errorf("found %+v, %v", all, err)
	}
	for name, there := range map[string]bool{"dead.json": false, "dead.lock": false, "dead.sock": false, "aa.json": true, "bb.lock": true, "note.txt": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", name, err == nil, there)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "aa.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of a record is %v, %v", info.Mode(), err)
	}
	for _, r := range open {
		if err := r.remove(); err != nil {
			t.Error(err)
		}
	}
	if all, err := Find(state); err != nil || len(all) != 0 {
		t.Errorf("after all have ended: %v, %v", all, err)
	}
}

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
	f, err := Forward(all[0], AnyLoopback(), log)
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

func TestSocketPathTooLong(t *testing.T) {
	state := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	r, err := openInstanceFile(state, Instance{ID: "aa"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.listen(""); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("got %v", err)
	}
	if err := r.remove(); err != nil {
		t.Error(err)
	}
}
