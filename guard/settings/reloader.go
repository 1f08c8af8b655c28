package settings

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// vanishGrace is how long the denials of a user or managed file stay in
// force after the file is deleted: some editors replace a file in two steps.
const vanishGrace = time.Second

// reloader reads the sources once or repeatedly, and keeps the state that later readings need.
type reloader struct {
	cfg       Config
	words     *keySet
	fixed     []source     // all but the managed files, whose number varies
	managed   []source     // the managed files, as listed last
	admin     []*directory // that managed files lie in
	files     map[string]*file
	dirs      map[string]*directory // that sources lie in
	absent    []string              // the topmost of those that were absent in the last reading
	order     []*file               // highest precedence first
	asked     int                   // how many of them are configured; the others have vanished
	trust     *trustStore
	trustPath string      // where the trust store is; "": nowhere
	store     fileVersion // of the trust store, when it was read
	notice    []warning   // about the trust store
	remarks   []warning   // about the reloader itself
	errs      []error     // faults of cfg
	begun     bool        // the first reading is done: the server runs
	reading   uint64      // counts the readings
	// due is when time alone will change the settings; zero if it will not.
	due time.Time
	now func() time.Time

	// Settings that were read stay in force while no file descriptors are available for another check. No snapshot is
	// made then.
	listed  map[string][]string // drop-ins of each directory, as listed last
	short   bool                // a shortage has been said and lasts
	hit     bool                // this reading met one
	dropIns func(dir string) ([]string, error)
	regular func(name string) ([]byte, os.FileInfo, error)
}

// file is one source, with the results of the readings so far.
type file struct {
	source
	dir         *directory
	fileVersion fileVersion
	text        []byte
	// layer is the content in force; nil while err is set.
	layer *layer
	// fresh means that layer is from the first reading that succeeded.
	fresh    bool
	approved items
	// exposed means that the file is reached through a root although its name is not in one.
	exposed bool
	err     error    // the file could not be read, and never was
	stale   *warning // the file could not be read; layer is the last good content
	gone    time.Time
}

func newReloader(cfg Config) *reloader {
	s := &reloader{cfg: cfg, words: newKeySet(), files: map[string]*file{}, dirs: map[string]*directory{}, now: time.Now,
		trust:  &trustStore{},
		listed: map[string][]string{}, dropIns: dropIns, regular: readRegular}
	if err := cfg.check(); err != nil {
		s.errs = []error{err}
	}
	for _, src := range cfg.sources() {
		if src.kind != Managed {
			s.fixed = append(s.fixed, src)
		}
	}
	for _, dir := range cfg.managedDirs() {
		s.admin = append(s.admin, s.directory(filepath.Dir(dir[0])))
	}
	if cfg.StateDir != "" {
		s.trustPath = filepath.Join(cfg.StateDir, trustFile)
	}
	return s
}

// names returns every path whose change can change the settings; for a drop-in directory one
// path for all its files.
func (s *reloader) names() []string {
	var names []string
	for _, d := range s.cfg.managedDirs() {
		names = append(names, d[0], filepath.Join(d[1], "*.json"))
	}
	for _, src := range s.fixed {
		names = append(names, src.file)
	}
	if s.trustPath != "" {
		names = append(names, s.trustPath)
	}
	return names
}

// check refuses paths whose meaning depends on the working directory.
func (cfg Config) check() error {
	for _, path := range append([]string{cfg.Home, cfg.UserConfigDir, cfg.StateDir, cfg.ManagedDir}, cfg.Roots...) {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%s is not an absolute path: settings cannot be located", path)
		}
	}
	return nil
}

// read checks every source and returns the merged settings; nil if
// nothing has changed since the last time.
func (s *reloader) read() *Settings {
	now := s.now()
	s.reading++
	s.due, s.hit = time.Time{}, false
	defer func() { s.short, s.absent = s.hit, s.topmostAbsent() }()
	changed := s.arrange() || !s.begun
	for _, f := range s.order {
		changed = s.refresh(f, now) || changed
	}
	changed = s.lookTrust(now) || changed
	if !changed {
		return nil
	}
	s.begun = true
	s.approve()
	return s.merged()
}

// arrange puts the sources in order. A managed drop-in that vanished stays on
// the list until its grace is over. It reports whether something that could not
// be read is no longer asked for.
func (s *reloader) arrange() (changed bool) {
	managed := s.cfg.managedSources(s.list)
	if s.settled() && slices.Equal(managed, s.managed) {
		return false
	}
	s.managed = managed
	listed := append(dedupe(slices.Clone(managed)), s.fixed...)
	s.asked = len(listed)
	var order []*file
	for _, src := range listed {
		f := s.files[src.file]
		if f == nil {
			f = &file{source: src, dir: s.directory(filepath.Dir(src.file))}
			s.files[src.file] = f
		}
		order = append(order, f)
	}
	for _, f := range s.order {
		switch {
		case slices.Contains(order, f):
		case f.required: // a directory of drop-ins that can be listed again
			delete(s.files, f.file)
			changed = true
		case f.text == nil && f.gone.IsZero() && f.err == nil && f.stale == nil:
			delete(s.files, f.file) // no content of it is in force
		default:
			order = slices.Insert(order, 0, f)
		}
	}
	s.order = order
	return changed
}

// list is dropIns. If no file descriptors are available, it returns the last list.
func (s *reloader) list(dir string) ([]string, error) {
	if s.directory(filepath.Dir(dir)).stillAbsent(s.reading) {
		s.listed[dir] = nil
		return nil, fs.ErrNotExist
	}
	names, err := s.dropIns(dir)
	if last, known := s.listed[dir]; known && isShortage(err) {
		s.warnOnce(dir, err)
		return last, nil
	}
	if err == nil || absent(err) {
		s.listed[dir] = names
	}
	return names, err
}

// warnOnce warns once that path could not be checked.
func (s *reloader) warnOnce(path string, err error) {
	if !s.short && !s.hit {
		s.cfg.log().Warn("settings cannot be looked at: what was read of them last stays in force until they can",
			"path", path, "error", err)
	}
	s.hit = true
}

func (s *reloader) dueBy(t time.Time) {
	if s.due.IsZero() || t.Before(s.due) {
		s.due = t
	}
}

// tightenOnly reports whether a running server takes only tightening from the file.
func (f *file) tightenOnly() bool { return f.exposed || f.kind != Managed && f.kind != User }

// view returns the view of the file.
func (f *file) view() view { return view{layer: f.layer, free: !f.tightenOnly(), approved: f.approved} }

// lookTrust reads the trust store if it may have changed.
func (s *reloader) lookTrust(now time.Time) bool {
	path := s.trustPath
	if path == "" {
		return false
	}
	seen, _ := statVersion(path, now)
	if s.store.proves(seen) {
		return false
	}
	store, err := readTrust(s.cfg, s.regular)
	if isShortage(err) && s.begun {
		s.warnOnce(path, err)
		return false
	}
	before, trusted := s.notice, s.trust
	s.trust, s.store, s.notice = store, seen, nil
	if err == nil {
		return before != nil || !trusted.equal(store)
	}
	s.trust, s.store = &trustStore{}, fileVersion{at: now, err: err.Error()} // read it again the next time
	s.notice = []warning{{File: path, Text: err.Error() + "; no workspace is trusted by it"}}
	return !slices.Equal(before, s.notice)
}

// approve decides which loosening content of each file applies.
func (s *reloader) approve() {
	byRoot := map[string]items{}
	for _, f := range s.order {
		if f.workspace != "" && f.layer != nil {
			byRoot[f.workspace] = byRoot[f.workspace].union(f.layer.loosening(s.words))
		}
	}
	for _, f := range s.order {
		if f.layer == nil || !f.tightenOnly() {
			continue
		}
		now := itemsOf(f.layer.loosening(s.words))
		record, known := s.trust.Workspaces[canonical(f.workspace)]
		known = known && f.workspace != ""
		believed := s.cfg.TrustWorkspace || f.workspace == ""
		digest := byRoot[f.workspace].digest()
		switch {
		case known && record.SHA256 == digest, s.digestIs(digest), believed && f.fresh:
			f.approved = now
		case (known || believed) && f.stale != nil:
			// Approved content of a file that cannot be read counts again when the file can be read.
		case known || believed:
			// The user trusted other content: the part that is still in the file applies.
			f.approved = f.approved.intersect(now)
		default:
			f.approved, f.layer.heldHooks = nil, nil
		}
		f.fresh = false
	}
}

// digestIs reports whether the command line trusts loosening content of this digest.
func (s *reloader) digestIs(digest string) bool {
	return s.cfg.TrustDigest != "" && strings.HasPrefix(digest, s.cfg.TrustDigest)
}

// merged joins what is in force.
func (s *reloader) merged() *Settings {
	views := []view{s.flags()}
	var notes []warning
	var broken []error
	broken = append(broken, s.errs...)
	for _, f := range s.order {
		if f.err != nil {
			broken = append(broken, f.err)
			continue
		}
		notes = append(notes, f.layer.warnings...)
		if f.exposed {
			notes = append(notes, warning{File: f.file, Text: "a link leads through a root, where commands write: what the " +
				"file allows, and its hooks, are taken over at the next start only"})
		}
		if f.stale != nil {
			notes = append(notes, *f.stale)
		}
		views = append(views, f.view())
	}
	slices.SortStableFunc(views, func(a, b view) int { return int(a.source.kind) - int(b.source.kind) })
	out := merge(s.words, views)
	out.Warnings = slices.Concat(notes, out.Warnings, s.notice, s.remarks)
	out.Broken = broken
	return out
}

// flags returns the rules given on the command line.
func (s *reloader) flags() view {
	l := newLayer(source{kind: commandLine})
	for flag, rules := range map[string][]string{"--allow": s.cfg.Allow, "--deny": s.cfg.Deny} {
		name := keyAllow
		if flag == "--deny" {
			name = keyDeny
		}
		for _, rule := range rules {
			l.lists[name] = append(l.lists[name], Entry{Text: rule, Kind: commandLine, File: flag})
		}
	}
	return view{layer: l, free: true}
}

// unchanged reports whether a reading now would find no change. It makes the checks of a reading and records nothing,
// so that several goroutines may call it at once. If a check would have to be recorded, it returns false.
func (s *reloader) unchanged() bool {
	managed := len(s.managed) > len(s.admin) || slices.ContainsFunc(s.admin, func(d *directory) bool { return !d.absent })
	if !s.begun || s.short || !s.due.IsZero() || !s.settled() || managed {
		return false // drop-ins must be listed
	}
	for _, path := range s.absent {
		if !absent(exists(path)) {
			return false
		}
	}
	now := s.now()
	for _, f := range s.order {
		if !f.gone.IsZero() {
			return false
		}
		seen := absentVersion(now)
		if name := s.standing(f); name != "" && (name != f.file || !f.dir.absent) {
			seen, _ = statVersion(name, now)
		}
		if !f.fileVersion.proves(seen) {
			return false
		}
	}
	if s.trustPath == "" {
		return true
	}
	seen, _ := statVersion(s.trustPath, now)
	return s.store.proves(seen)
}

// topmostAbsent returns the absent directories that do not lie in another absent one.
func (s *reloader) topmostAbsent() []string {
	var all []string
	for path, d := range s.dirs {
		above := s.dirs[filepath.Dir(path)]
		if d.absent && (above == nil || !above.absent) {
			all = append(all, path)
		}
	}
	return all
}

// settled reports whether the sources were put in order, and none has been removed since.
func (s *reloader) settled() bool { return s.order != nil && len(s.order) == s.asked }

// Load reads all sources once. It never fails: errors are in
// Broken or Warnings of the result.
func Load(cfg Config) *Settings { return newReloader(cfg).read() }
