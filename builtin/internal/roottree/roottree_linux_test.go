package roottree

import (
	"io/fs"
	"os"
	"slices"
	"testing"
)

func TestWalk(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, dir := range []string{"d/e", "d\xff/\xfe"} {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.WriteFile("d\xff/\xfe/f\xfd", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := root.Symlink("/", "l\xff"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want []string
	}{
		{".", []string{".", "d", "d/e", "d\xff", "d\xff/\xfe", "d\xff/\xfe/f\xfd", "l\xff"}}, // no link is followed
		{"d\xff", []string{"d\xff", "d\xff/\xfe", "d\xff/\xfe/f\xfd"}},
		{"none\xff", []string{"none\xff: true"}},
		{"l\xff", []string{"l\xff: false"}}, // it leads out of the root
	} {
		var got []string
		err := Walk(root, c.name, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				name += map[bool]string{true: ": true", false: ": false"}[os.IsNotExist(err)]
			}
			got = append(got, name)
			return nil
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}
