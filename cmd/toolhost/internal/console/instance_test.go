package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	for name, there := range map[string]bool{"dead.json": false, "dead.lock": false, "dead.sock": false,
		"aa.json": true, "bb.lock": true, "note.txt": true} {
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
