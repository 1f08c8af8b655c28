package statedir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestSealed damages each byte of a file: what Load reads is what Save wrote, or an error says that it is damaged.
func TestSealed(t *testing.T) {
	type value struct{ Names map[string]string }
	for _, v := range []any{value{map[string]string{"a": "1", "_sealed": "2"}}, value{}, []string{"a", "b"}, []string{},
		map[string]int{}} {
		file := filepath.Join(t.TempDir(), "new", "file")
		if err := Save(file, v); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(file)
		if err != nil || !json.Valid(whole) {
			t.Fatalf("%s, %v", whole, err)
		}
		load := func(text []byte) {
			t.Helper()
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			got := reflect.New(reflect.TypeOf(v))
			err := Load(file, 1<<10, got.Interface())
			if err == nil && !reflect.DeepEqual(got.Elem().Interface(), v) || err != nil &&
				!errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %+v, %v", text, got.Elem(), err)
			}
			if err != nil && bytes.Equal(text, whole) {
				t.Errorf("%s: %v", text, err)
			}
		}
		load(whole)
		for i := range whole {
			load(whole[:i])
			for _, bits := range []byte{1, 0x20, 0x80} {
				damaged := bytes.Clone(whole)
				damaged[i] ^= bits
				load(damaged)
			}
		}
	}
}

// TestSealedOfEverySize: the seal may not depend on the room that the encoder leaves after a text.
func TestSealedOfEverySize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for size := 0; size < 1<<16; size += 1 + size/50 {
		was := strings.Repeat("x", size)
		var got []string
		if err := errors.Join(Save(file, []string{was}), Load(file, 1<<20, &got)); err != nil || len(got) != 1 ||
			got[0] != was {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	var v []int
	if err := Load(file, 10, &v); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	for text, want := range map[string]string{"[1, 2]\n": "[1 2]", `{"a":1}`: ErrDamaged.Error(),
		`[1,2,3,4,5]`: "longer than"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var v []int
		if got := fmt.Sprint(Load(file, 10, &v), v); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestSetAside: the last damaged file of a name is kept, and others as long as a user may look for them.
func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	put(t, filepath.Join(dir, "young.damaged"))
	put(t, filepath.Join(dir, "other"))
	then := time.Now().Add(-2 * asideAge)
	for _, name := range []string{"old.damaged", "f", "f.damaged"} {
		path := put(t, filepath.Join(dir, name))
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	aside, err := SetAside(file)
	if err != nil || aside != file+asideSuffix {
		t.Errorf("%q, %v", aside, err)
	}
	if _, err := SetAside(put(t, filepath.Join(dir, "next"))); err != nil {
		t.Error(err)
	}
	for name, there := range map[string]bool{"f": false, "f.damaged": true, "old.damaged": false, "young.damaged": true,
		"other": true} {
		if exists(filepath.Join(dir, name)) != there {
			t.Errorf("%s is there: %v", name, !there)
		}
	}
}
