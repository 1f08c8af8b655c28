package statedir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// ErrDamaged reports that the content of a file is not what [Save] wrote.
var ErrDamaged = errors.New("the file is damaged")

// seal matches the end of a text that [Save] wrote: the last member of an object, or the last element of an array,
// with the SHA-256 of the text before it. Versions that know no seals ignore it.
var seal = regexp.MustCompile(`,?(?:\{"_sealed":"([0-9a-f]{64})"\}\]|"_sealed":"([0-9a-f]{64})"\})$`)

// maxSeal is more than the length of a seal, in bytes.
const maxSeal = 128

// Save replaces a file by the JSON text of v, an object or an array, with a seal. It makes the directory.
func Save(file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	body, end := text[:len(text)-1], text[len(text)-1:]
	sum := sha256.Sum256(body)
	member := `"_sealed":"` + hex.EncodeToString(sum[:]) + `"`
	if string(end) == "]" {
		member = "{" + member + "}"
	}
	if len(body) > 1 {
		member = "," + member
	}
	return privatefile.Replace(file, slices.Concat(body, []byte(member), end))
}

// Load decodes into v a file of at most the given number of bytes that [Save] wrote. A file without a seal was
// written by an earlier version, and is accepted. The error matches [fs.ErrNotExist] if there is no file, and
// [ErrDamaged] if it was changed.
func Load(file string, most int64, v any) error {
	text, err := privatefile.Read(file, most)
	if err != nil {
		return err
	}
	tail := text[max(0, len(text)-maxSeal):]
	if end := seal.FindSubmatch(tail); end != nil {
		body := text[:len(text)-len(end[0])]
		sum := sha256.Sum256(body)
		if hex.EncodeToString(sum[:]) != string(end[1])+string(end[2]) {
			return fmt.Errorf("%s: %w: it differs from its digest", file, ErrDamaged)
		}
		text = append(bytes.Clone(body), text[len(text)-1])
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w: %w", file, ErrDamaged, err)
	}
	return nil
}

const (
	asideSuffix = ".damaged"
	// asideAge is how long a damaged file is kept for its user to look at.
	asideAge = 30 * 24 * time.Hour
)

// SetAside renames a damaged file in its directory, so that its user can look at it, and returns the new path. It
// also removes files that were set aside there long ago.
func SetAside(file string) (aside string, err error) {
	err = SweepDir(filepath.Dir(file), Limits{Age: asideAge}, func(e fs.DirEntry) Kind {
		if strings.HasSuffix(e.Name(), asideSuffix) {
			return Kept
		}
		return Foreign
	})
	aside = file + asideSuffix
	now := time.Now()
	return aside, errors.Join(err, os.Chtimes(file, now, now), os.Rename(file, aside))
}
