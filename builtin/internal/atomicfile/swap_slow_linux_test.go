//go:build slow

package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestSavedAtAnyMoment saves a file by a rename at any moment of a replacement. What was saved is never lost: it comes first, and the
// replacement is refused, or it comes last. ATOMICFILE_SAVES sets how often.
func TestSavedAtAnyMoment(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	if n, err := strconv.Atoi(os.Getenv("ATOMICFILE_SAVES")); err == nil {
		rounds = n
	}
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprintf("remove %v", remove), func(t *testing.T) {
			path, journal := memoryRoom(t)
			dir, file := open(t, path), filepath.Join(path, "f")
			var temps Temps
			overtaken, lost := 0, 0
			for i := range rounds {
				put(t, file, "old", 0o600)
				theirs := strconv.Itoa(i)
				put(t, file+".save", theirs, 0o600)
				var both sync.WaitGroup
				start := make(chan struct{})
				both.Go(func() {
					<-start
					for range rand.IntN(2000) {
						_ = theirs // the moment
					}
					if err := os.Rename(file+".save", file); err != nil {
						t.Error(err)
					}
				})
				o := Options{JournalDir: journal, Temps: &temps, Expect: func(f *os.File) error {
					if got, err := io.ReadAll(f); err != nil || f != nil && string(got) != "old" {
						return errors.Join(ErrOvertaken, err)
					}
					_, err := f.Seek(0, io.SeekStart)
					return err
				}}
				var err error
				close(start)
				if remove {
					err = Remove(dir, "f", o)
				} else {
					_, err = Replace(dir, "f", o, []byte("new"))
				}
				both.Wait()
				if errors.Is(err, ErrOvertaken) {
					overtaken++
				} else if err != nil {
					t.Fatal(err)
				}
				if got, _ := os.ReadFile(file); string(got) != theirs {
					lost++
				}
			}
			temps.Close()
			if lost > 0 {
				t.Errorf("%d of %d saved versions are lost", lost, rounds)
			}
			t.Logf("%d of %d replacements were refused", overtaken, rounds)
			tidy(t, path, journal, "f")
		})
	}
}
