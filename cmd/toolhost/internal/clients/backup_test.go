package clients

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHomeIsALink: what was not there is taken away again also where the home directory is a symbolic link.
func TestHomeIsALink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	for _, dir := range []bool{true, false} {
		c := known("cursor")
		r := scratch(t, c)
		if !dir {
			r.Force = true
			if err := os.Remove(filepath.Dir(c.UserFile(r.Env))); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(t.TempDir(), "home")
		if err := os.Symlink(r.Env.Home, link); err != nil {
			t.Fatal(err)
		}
		r.Env.Home = link
		for range 2 {
			if _, err := c.Install(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if report, err := c.Uninstall(t.Context(), r); err != nil || report.Action != Removed {
			t.Errorf("%s, %v", report.Action, err)
		}
		if left, err := os.ReadFile(c.UserFile(r.Env)); err == nil {
			t.Errorf("its directory was there: %v; the file that was made holds %q", dir, left)
		}
	}
}

// TestClockStandsStill: backups are in the order in which they were made whatever the clock says.
func TestClockStandsStill(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var made []string
	for i, clock := range []time.Time{now, now, now.Add(-time.Hour), now.Add(time.Hour), now} {
		at, err := newest(dir, clock)
		if err != nil {
			t.Fatal(err)
		}
		name := at.Format(backupTime) + "-" + digest([]byte{byte(i)})
		write(t, filepath.Join(dir, name), "x", 0o600)
		made = append(made, name)
	}
	names, err := list(dir)
	slices.Reverse(names)
	if err != nil || !slices.Equal(names, made) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestBackupsAreBounded keeps the newest.
func TestBackupsAreBounded(t *testing.T) {
	c := known("cursor")
	r := scratch(t, c)
	for i := range 2 * maxBackups {
		r.Server.Args = []string{"stdio", "--root", "/" + strings.Repeat("x", i+1)}
		if _, err := c.Install(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	names, err := list(r.Backups.of(c.UserFile(r.Env)))
	if err != nil || len(names) != maxBackups {
		t.Errorf("%d backups, %v", len(names), err)
	}
	raw, err := os.ReadFile(filepath.Join(r.Backups.of(c.UserFile(r.Env)), names[0]))
	if err != nil || !strings.Contains(string(raw), `"/`+strings.Repeat("x", 2*maxBackups-1)+`"`) {
		t.Errorf("the newest backup: %s, %v", raw, err)
	}
}
