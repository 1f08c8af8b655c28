package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	indexName  = "index"
	copyName   = "index.copy" // of the index: what is damaged in one is read from the other
	packsName  = "packs"
	asideName  = "aside"
	tidiedName = "tidied"
	tempMark   = "~" // stands between the owner and the rest of the name of a temporary file
)

var journalNames = regexp.MustCompile(`^[0-9a-f]{32}$`)

// A journal is what one principal changed.
type journal struct {
	dir   string
	owner string
	packs *segmentWriter

	changing sync.Mutex // taken before the lock
	pending  []byte     // ends of changes that are not written yet; guarded by changing

	mu    sync.Mutex
	since int   // changes begun since it was tidied
	kept  int   // changes remembered when it was tidied
	grown int64 // bytes stored since it was tidied
}

func journalName(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return hex.EncodeToString(sum[:16])
}

// journal returns the journal of a directory's name.
func (s *Store) journal(name string) *journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journals[name]
	if j == nil {
		dir := filepath.Join(s.cfg.Dir, name)
		packs := &segmentWriter{dir: filepath.Join(dir, packsName), owner: s.owner.name, limit: min(maxPack, s.cfg.Quota/packShare)}
		j = &journal{dir: dir, owner: s.owner.name, packs: packs}
		s.journals[name] = j
	}
	return j
}

// of returns the journals of a principal or of everyone, none if there is no directory.
func (s *Store) of(principal string) ([]*journal, error) {
	if s.cfg.Dir == "" {
		return nil, nil
	}
	if principal == "" {
		return nil, errors.New("the history is asked for nobody's changes: a principal is needed")
	}
	if principal != AllPrincipals {
		return []*journal{s.journal(journalName(principal))}, nil
	}
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []*journal
	for _, e := range entries {
		if e.IsDir() && journalNames.MatchString(e.Name()) {
			all = append(all, s.journal(e.Name()))
		}
	}
	return all, nil
}

// records returns the changes of a principal or of everyone, oldest first, and who undid them. What another process has begun just now
// may have ended as well, which is written a moment later: that is waited for.
func (s *Store) records(principal string) ([]record, error) {
	const looks = 10
	for range looks {
		all, err := s.written(principal)
		if err != nil || !slices.ContainsFunc(all, s.isFresh) {
			return all, err
		}
		time.Sleep(2 * flushAfter)
	}
	return s.written(principal)
}

// isFresh reports whether another process has begun a change within the last second and not told its end.
func (s *Store) isFresh(r record) bool {
	age := time.Since(r.Time)
	return r.State == Pending && r.owner != s.owner.name && age >= 0 && age < time.Second
}

// written is records as they are now.
func (s *Store) written(principal string) ([]record, error) {
	journals, err := s.of(principal)
	if err != nil {
		return nil, err
	}
	var all []record
	for _, j := range journals {
		x, err := j.load()
		if err != nil {
			return nil, err
		}
		all = append(all, x.records...)
	}
	if len(journals) > 1 {
		slices.SortStableFunc(all, func(a, b record) int { return a.Time.Compare(b.Time) })
	}
	markUndone(all)
	return all, nil
}

// markUndone notes on each change which undo of it stands. The newest come first: an undo that was undone itself undoes nothing.
func markUndone(all []record) {
	by := make(map[string]string)
	for i := range slices.Backward(all) {
		r := &all[i]
		r.UndoneBy = by[r.ID]
		if r.State != Done || r.UndoneBy != "" {
			continue
		}
		for _, id := range r.UndoOf {
			if by[id] == "" {
				by[id] = r.ID
			}
		}
	}
}

func (j *journal) locked(do func() error) error {
	return locked(&j.changing, filepath.Join(j.dir, lockName), do)
}

// load reads the index. It needs no lock: lines are appended whole or, for a moment, in part, and an index is replaced by a rename.
func (j *journal) load() (index, error) {
	j.changing.Lock()
	owed := slices.Clone(j.pending) // before the index: what is written meanwhile is read twice rather than not at all
	j.changing.Unlock()
	return j.loadWith(owed)
}

// loadWith reads the index, and ends of changes that are not written yet. What is damaged or missing is taken from the copy: the two are
// of one length, unless the last to write was killed between them.
func (j *journal) loadWith(owed []byte) (index, error) {
	raw, err := readRegular(filepath.Join(j.dir, indexName))
	if err != nil {
		return index{}, err
	}
	x := parseIndex(raw, owed)
	if info, err := os.Lstat(filepath.Join(j.dir, copyName)); len(x.damaged) == 0 && (err == nil && info.Size() == int64(len(raw)) || err != nil && len(raw) > 0) {
		return x, nil
	}
	other, err := readRegular(filepath.Join(j.dir, copyName))
	if err != nil {
		other = nil
	}
	both := parseIndex(raw, other, owed)
	both.lost = len(other) == 0 && (len(raw) == 0 || len(x.damaged) > 0) || len(x.damaged) > 0 && len(both.damaged) > len(x.damaged)
	both.found = len(both.records) - len(x.records)
	if both.found > 0 {
		slices.SortStableFunc(both.records, func(a, b record) int { return a.Time.Compare(b.Time) })
	}
	return both, nil
}

// append adds a line to the index and its copy. On an error the index is as it was. Callers hold the lock.
func (j *journal) append(l []byte, sync bool) (err error) {
	f, err := os.OpenFile(filepath.Join(j.dir, indexName), os.O_RDWR|os.O_CREATE|privatefile.NoWait|privatefile.NoFollow, ownerFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	torn, err := isTorn(f, size)
	if err != nil {
		return err
	}
	all := slices.Concat(j.pending, l)
	if torn {
		all = append([]byte("\n"), all...)
	}
	if _, err := f.WriteAt(all, size); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	j.pending = nil
	j.appendToCopy(all, sync)
	if !sync {
		return nil
	}
	err = f.Sync()
	if size == 0 { // the names are new
		err = errors.Join(err, privatefile.SyncDir(j.dir), privatefile.SyncDir(filepath.Dir(j.dir)))
	}
	return err
}

// appendToCopy adds to the copy what the index has by now. What fails is in the index.
func (j *journal) appendToCopy(all []byte, sync bool) {
	f, err := os.OpenFile(filepath.Join(j.dir, copyName), os.O_WRONLY|os.O_APPEND|os.O_CREATE|privatefile.NoWait|privatefile.NoFollow, ownerFile)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Write(all); err == nil && sync {
		_ = f.Sync()
	}
}

// isTorn reports whether the last line has no end: its writer was killed. It is closed off, and set aside when the journal is tidied.
func isTorn(f *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return last[0] != '\n', err
}

// replaceIndex writes the index anew, and what was damaged in the old one to a file next to. Callers hold the lock.
func (j *journal) replaceIndex(records []record, damaged [][]byte, sync bool) error {
	var all bytes.Buffer
	for _, r := range records {
		l, err := r.encode()
		if err != nil {
			return err
		}
		all.Write(l)
	}
	if len(damaged) > 0 {
		aside := filepath.Join(j.dir, asideName)
		if err := os.MkdirAll(aside, ownerDir); err != nil {
			return err
		}
		lines := append(bytes.Join(damaged, []byte("\n")), '\n')
		if err := os.WriteFile(filepath.Join(aside, indexName+"-"+shortID()), lines, ownerFile); err != nil {
			return err
		}
	}
	if err := j.replace(copyName, all.Bytes(), sync); err != nil { // the copy first: it never has what the index has not
		_ = os.Remove(filepath.Join(j.dir, copyName))
	}
	if err := j.replace(indexName, all.Bytes(), sync); err != nil || !sync {
		return err
	}
	return privatefile.SyncDir(j.dir)
}

// replace puts a file in the place of whatever has the name. On an error nothing is left of it.
func (j *journal) replace(name string, content []byte, sync bool) error {
	temp, err := j.writeTemp(content, sync)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(j.dir, name)); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

// noteTidied writes when the journal was tidied last, which is now.
func (j *journal) noteTidied() error {
	return j.replace(tidiedName, []byte(time.Now().UTC().Format(time.RFC3339Nano)), false)
}

// tidiedAt returns when the journal was last tidied; the zero time if that is unknown.
func (j *journal) tidiedAt() time.Time {
	raw, err := readRegular(filepath.Join(j.dir, tidiedName))
	if err != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, string(raw))
	if err != nil {
		return time.Time{}
	}
	return at
}

// writeTemp writes a file whose name tells whose it is. On an error nothing is left.
func (j *journal) writeTemp(content []byte, sync bool) (string, error) {
	path := filepath.Join(j.dir, j.owner+tempMark+shortID())
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerFile)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}
