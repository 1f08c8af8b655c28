package settle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

// Names in the directory of a workspace, below the state directory. The slots and copies of files are in the same
// directory.
const (
	recordName  = "record.json"
	answersName = "known.txt"
	lockName    = "lock"
	tasksName   = "tasks"
	droppedName = "dropped" // files that were held and are no longer: a person wrote the name, or refused them
)

// dropLimits bound the dropped files.
var dropLimits = statedir.Limits{Age: 30 * 24 * time.Hour, Files: 1000, Bytes: 256 << 20}

// A name is the path of a protected name below the directory of its workspace.
type name string

// String returns the name for a note: quoted if it has characters that could pass for other words of the note.
func (n name) String() string {
	if quoted := strconv.QuoteToGraphic(string(n)); quoted != `"`+string(n)+`"` ||
		strings.ContainsAny(string(n), ",()") {
		return quoted
	}
	return string(n)
}

// MarshalText keeps names whole that are not valid UTF-8.
func (n name) MarshalText() ([]byte, error) { return []byte(statedir.NameText(string(n))), nil }

// UnmarshalText is the opposite of MarshalText.
func (n *name) UnmarshalText(text []byte) error {
	plain, err := statedir.TextName(string(text))
	*n = name(plain)
	return err
}

// A record is what is known of the protected names of a workspace.
type record struct {
	Dir   string
	Files byName[file] // what stood at each name when the first command began, or after the last had ended
	Dirs  byName[bool] // the directories at and below protected names, at the same time
	Held  byName[*held]
	Own   byName[bool] `json:",omitempty"` // what is not settled, see [OwnOfHome]
	Next  int          // the number of the next slot or copy
}

// A byName is a map whose keys stay whole in JSON. Package json does not call MarshalText of keys of a string type.
type byName[V any] map[name]V

// MarshalJSON uses [name.MarshalText] for the keys.
func (m byName[V]) MarshalJSON() ([]byte, error) {
	texts := make(map[string]V, len(m))
	for key, value := range m {
		text, err := key.MarshalText()
		if err != nil {
			return nil, err
		}
		texts[string(text)] = value
	}
	return json.Marshal(texts)
}

// A file is what stands at a protected name.
type file struct {
	ID    identity
	Stamp stamp
	Racy  bool   `json:",omitempty"` // it may have changed since, and have the same stamp
	Copy  string `json:",omitempty"` // the name of a copy
}

// A held file is a change of a protected name that no person has answered for. Its slot has the file that does not
// stand at the name: between commands the held file, while commands run the former one. If that file is absent, there
// is no slot.
type held struct {
	Slot        string
	Former, Now identity
	Gone        string `json:",omitempty"` // the outermost directory of the name that the command removed
}

// A memory has the contents of names that are known, and those that a call wrote.
type memory struct {
	known, made map[name]map[identity]bool
	read        int64 // how much of the file has been read
}

// A store keeps the record and the answers of one workspace. A host holds the lock shared while its calls run, and
// the lock of tasks while its tasks run, so that other hosts see whether any do. The file of the lock has two marks:
// whether calls or tasks run, and whether their changes may be mixed with those of a person. The file of tasks has
// the names that tasks claim, one in a line.
type store struct {
	dir         string
	slots       *os.Root
	lock, tasks *os.File
	seen        stamp // of the record that was read or written last
}

func openStore(dir string) (*store, error) {
	if err := privatefile.MakeDir(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|privatefile.NoFollow, 0o600)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	tasks, err := os.OpenFile(filepath.Join(dir, tasksName),
		os.O_RDWR|os.O_CREATE|os.O_APPEND|privatefile.NoFollow, 0o600)
	if err != nil {
		return nil, errors.Join(err, lock.Close(), root.Close())
	}
	return &store{dir: dir, slots: root, lock: lock, tasks: tasks}, nil
}

func (s *store) close() error { return errors.Join(s.lock.Close(), s.tasks.Close(), s.slots.Close()) }

// lockAlone takes the lock for this process, unless calls of another one run. It waits for one that exchanges files.
func (s *store) lockAlone() bool {
	if statedir.TryLock(s.lock) {
		return true
	}
	return statedir.ShareLock(s.lock) == nil && statedir.TryLock(s.lock)
}

// claim adds names that tasks have changed.
func (s *store) claim(names []name) error {
	var text strings.Builder
	for _, rel := range names {
		fmt.Fprintf(&text, "%q\n", string(rel))
	}
	_, err := s.tasks.WriteString(text.String())
	return err
}

// claimed returns the names that tasks claim.
func (s *store) claimed() (names []name, err error) {
	text, err := os.ReadFile(s.tasks.Name())
	for line := range strings.Lines(string(text)) {
		if rel, err := strconv.Unquote(strings.TrimSuffix(line, "\n")); err == nil {
			names = append(names, name(rel))
		}
	}
	return names, err
}

// unclaim removes all claims.
func (s *store) unclaim() error {
	if info, err := s.tasks.Stat(); err == nil && info.Size() == 0 {
		return nil
	}
	return s.tasks.Truncate(0)
}

// Places of the marks in the file of the lock.
const (
	runningAt = 0
	mixedAt   = 1
)

// running reports whether commands run, or ran when their host was killed.
func (s *store) running() bool { return s.markAt(runningAt) == '1' }

// mixed reports whether changes since the last look may be those of a call or task.
func (s *store) mixed() bool { return s.markAt(mixedAt) != '0' }

func (s *store) markAt(at int64) byte {
	mark := []byte{0}
	_, _ = s.lock.ReadAt(mark, at) // a file that was just made is empty
	return mark[0]
}

// mark sets the marks from a place on: "1" is set, "0" is not.
func (s *store) mark(at int64, text string) error {
	_, err := s.lock.WriteAt([]byte(text), at)
	return err
}

// load reads the record if another host has written it.
func (s *store) load(r *record) error {
	path := filepath.Join(s.dir, recordName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if now := stampOf(info); now != s.seen {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		next := record{Dir: r.Dir}
		if err := json.Unmarshal(text, &next); err != nil {
			return fmt.Errorf("%s is damaged (%w): move it away", path, err)
		}
		*r, s.seen = next, now
	}
	r.fill()
	return nil
}

func (r *record) fill() {
	if r.Files == nil {
		r.Files = map[name]file{}
	}
	if r.Held == nil {
		r.Held = map[name]*held{}
	}
	if r.Dirs == nil {
		r.Dirs = map[name]bool{}
	}
}

// save writes the record.
func (s *store) save(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, recordName)
	if err := privatefile.ReplaceQuickly(path, text); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil {
		s.seen = stampOf(info)
	}
	return nil
}

// The first letters of the names of slots and copies.
const (
	slotLetter = "s"
	copyLetter = "c"
)

// next returns an unused name for a slot or a copy.
func (s *store) next(r *record, letter string) string {
	for {
		r.Next++
		unused := letter + strconv.Itoa(r.Next)
		if _, err := s.slots.Lstat(unused); errors.Is(err, fs.ErrNotExist) {
			return unused
		}
	}
}

// drop keeps a file that is no longer held where a person may find it, under the last element of its name.
func (s *store) drop(slot string, rel name) (kept string, err error) {
	dir := filepath.Join(s.dir, droppedName)
	if err := privatefile.MakeDir(dir); err != nil {
		return "", err
	}
	to := filepath.Join(droppedName, slot+"-"+time.Now().UTC().Format("20060102T150405")+"-"+filepath.Base(string(rel)))
	if err := s.slots.Rename(slot, to); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, to), statedir.SweepDir(dir, dropLimits, statedir.All)
}

// tidy removes copies that no name needs, and drops slots that the record does not have.
func (s *store) tidy(r *record) error {
	used := map[string]bool{}
	for _, f := range r.Files {
		used[f.Copy] = true
	}
	for _, h := range r.Held {
		used[h.Slot], used[h.Slot+freshSuffix] = true, true
	}
	entries, err := fs.ReadDir(s.slots.FS(), ".")
	errs := []error{err}
	for _, e := range entries {
		switch letter := slotOrCopy(e.Name()); {
		case used[e.Name()] || letter == "":
		case letter == copyLetter || strings.HasSuffix(e.Name(), freshSuffix):
			errs = append(errs, s.slots.Remove(e.Name()))
		default: // its record could not be written
			_, err := s.drop(e.Name(), "unrecorded")
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// slotOrCopy returns the letter of a name that [store.next] makes, or "".
func slotOrCopy(of string) string {
	number := strings.TrimSuffix(of, freshSuffix)
	if number == "" {
		return ""
	}
	letter := number[:1]
	if _, err := strconv.Atoi(number[1:]); err != nil || letter != slotLetter && letter != copyLetter {
		return ""
	}
	return letter
}

// The words of the answers file.
const (
	knownWord = "known"
	madeWord  = "made"
)

// remember reads what was added to the answers.
func (s *store) remember(m *memory) error {
	path := filepath.Join(s.dir, answersName)
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == m.read {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(m.read, 0); err != nil {
		return err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil // the rest of a line is being written
		}
		m.read += int64(len(line))
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		id, quoted, _ := strings.Cut(rest, " ")
		if rel, err := strconv.Unquote(quoted); err == nil {
			m.take(word, name(rel), identity(id))
		}
	}
}

func (m *memory) take(word string, rel name, id identity) {
	of, other := &m.known, m.made
	if word == madeWord {
		of, other = &m.made, nil
	}
	if *of == nil {
		*of = map[name]map[identity]bool{}
	}
	if (*of)[rel] == nil {
		(*of)[rel] = map[identity]bool{}
	}
	(*of)[rel][id] = true
	delete(other[rel], id) // a person has answered
}

// An answer is a line of the answers.
type answer struct {
	word string
	rel  name
	id   identity
}

// write adds answers, and takes them.
func (s *store) write(m *memory, list []answer) error {
	if len(list) == 0 {
		return nil
	}
	var text strings.Builder
	for _, a := range list {
		fmt.Fprintf(&text, "%s %s %q\n", a.word, a.id, string(a.rel))
		m.take(a.word, a.rel, a.id)
	}
	path := filepath.Join(s.dir, answersName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|privatefile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}
