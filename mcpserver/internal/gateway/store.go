package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

// maxStore limits the size of the record of a server, in bytes.
const maxStore = 64 << 20

// An offer is what a server offers.
type offer struct {
	Config       string            `json:"config"` // the hash of its entry
	Era          string            `json:"era"`
	Instructions string            `json:"instructions,omitempty"`
	Tools        []json.RawMessage `json:"tools,omitempty"`
	Prompts      []json.RawMessage `json:"prompts,omitempty"`
	Readable     bool              `json:"readable,omitempty"` // the server has the capability "resources"
	// Own are the resources that the server lists to the local user. Nil if they are not known.
	Own   *listing  `json:"own,omitempty"`
	Since time.Time `json:"since"`
}

// A listing has the resources, templates and skills that a server lists to one caller. They are often private to that
// caller.
type listing struct {
	Resources []json.RawMessage `json:"resources,omitempty"`
	Templates []json.RawMessage `json:"templates,omitempty"`
	Skills    []json.RawMessage `json:"skills,omitempty"`
}

// A record is what is stored about a server.
type record struct {
	Offer *offer `json:"offer,omitempty"`
	// Accepted are the accepted definitions, by kind and name: "tool NAME". Nil if nothing was accepted yet.
	Accepted map[string]json.RawMessage `json:"accepted,omitzero"`
	// Withheld are the definitions that differ from the accepted ones, with the time since when.
	Withheld map[string]time.Time `json:"withheld,omitempty"`
	// Reviewed has the fingerprint of each definition in the last review. Nil if there was none since the last acceptance.
	Reviewed map[string]string `json:"reviewed,omitempty"`
}

// A store keeps the record of a server, in a file that several hosts share.
type store struct {
	file string // "": in memory only
	name string // of the server
	log  *slog.Logger
	all  bool // the first definitions are accepted without a review

	mu   sync.Mutex
	now  record
	at   time.Time // modification time of the file when it was read
	size int64     // of the file when it was read
}

// refresh reads the record again if another process has changed it, and reports whether it did.
func (s *store) refresh() bool {
	if s.file == "" {
		return false
	}
	info, err := os.Stat(s.file)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || info.ModTime().Equal(s.at) && info.Size() == s.size {
		return false
	}
	s.read()
	return true
}

// openStore reads the record of a server. If there is none, the first definitions are accepted, unless the entry is
// that of a project. If it cannot be read, nothing is accepted.
func openStore(dir string, e *Entry, log *slog.Logger) *store {
	s := &store{name: e.Name, log: log, all: e.Trust != Project}
	if dir == "" {
		return s
	}
	s.file = filepath.Join(dir, e.Name+"-"+e.Trust.String()+".json")
	if e.Trust == Project { // another project may have a server with the same name
		s.file = filepath.Join(dir, e.Name+"-"+e.Trust.String()+"-"+fingerprint(marshal(e.File))[:16]+".json")
	}
	s.read()
	return s
}

// String returns the name of the trust.
func (t Trust) String() string { return [...]string{"project", "user", "managed"}[t] }

func (s *store) read() {
	if info, err := os.Stat(s.file); err == nil {
		s.at, s.size = info.ModTime(), info.Size()
	}
	var r record
	err := statedir.Load(s.file, maxStore, &r)
	if err == nil {
		s.now = r
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if s.now.Accepted == nil {
		s.now.Accepted = map[string]json.RawMessage{} // not nil: what was accepted is not known
	}
	if errors.Is(err, statedir.ErrDamaged) {
		aside, asideErr := statedir.SetAside(s.file)
		s.log.Warn("the record of a server is damaged and was set aside: what it offers is withheld until it is reviewed "+
			"and accepted; "+
			"run `toolhost mcp review "+s.name+"`", "file", aside, "error", errors.Join(err, asideErr, statedir.Save(s.file, s.now)))
	}
}

// update changes the record under the lock of its file. If the file cannot be written, the change lasts until the host
// ends, and the error says so.
func (s *store) update(change func(*record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		change(&s.now)
		return nil
	}
	changed := false
	err := os.MkdirAll(filepath.Dir(s.file), 0o700)
	if err == nil {
		err = privatefile.Locked(strings.TrimSuffix(s.file, ".json")+".lock", func() error {
			s.read()
			change(&s.now)
			changed = true
			if err := statedir.Save(s.file, s.now); err != nil {
				return err
			}
			s.read()
			return nil
		})
	}
	if !changed {
		change(&s.now)
	}
	if err != nil {
		return fmt.Errorf("the record of %s could not be stored and lasts until this host ends: %w", s.name, err)
	}
	return nil
}

// known reports whether the store has an offer for an entry with this hash.
func (s *store) known(hash string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Offer != nil && s.now.Offer.Config == hash
}

// seen reports whether the server was ever connected.
func (s *store) seen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Accepted != nil
}

func (s *store) era() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Offer == nil {
		return ""
	}
	return s.now.Offer.Era
}

// get returns the record. It must not be modified.
func (s *store) get() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.now
	r.Withheld = maps.Clone(r.Withheld)
	return r
}

// learned stores what a server offers, and withholds definitions that differ from the accepted ones. first means that
// the server is new and may still add tools.
func (s *store) learned(e *Entry, o offer, first bool) {
	o.Config = e.Hash()
	s.mu.Lock()
	o.inherit(s.now.Offer)
	same := s.now.Offer != nil && equalOffers(*s.now.Offer, o) && s.now.Accepted != nil
	s.mu.Unlock()
	if same {
		return
	}
	o.Since = time.Now().UTC().Truncate(time.Second)
	err := s.update(func(r *record) {
		o.inherit(r.Offer)
		_, readable := r.Accepted[resourcesID]
		fresh := r.Accepted == nil
		listed := readable && (r.Offer == nil || r.Offer.Own == nil) // other callers may have used the server first
		r.Offer = &o
		now := o.definitions()
		if fresh {
			r.Accepted = map[string]json.RawMessage{}
		}
		for id, def := range now {
			_, known := r.Accepted[id]
			if s.all && !known && (fresh || first || listed && isOwn(id)) {
				r.Accepted[id] = def
			}
		}
		r.withhold(now)
	})
	if err != nil {
		s.log.Warn("what a server offers is not kept", "error", err)
	}
}

// isOwn reports whether a definition with this id is in the list of a caller.
func isOwn(id string) bool {
	word, _, _ := strings.Cut(id, " ")
	return word == templateKind.word || word == skillKind.word
}

// inherit copies the list of the local user if o was learned for another caller.
func (o *offer) inherit(was *offer) {
	if o.Own == nil && was != nil && was.Config == o.Config {
		o.Own = was.Own
	}
}

func equalOffers(a, b offer) bool {
	a.Since, b.Since = time.Time{}, time.Time{}
	return string(marshal(a)) == string(marshal(b))
}

// withhold sets Withheld to the definitions that differ from the accepted ones.
func (r *record) withhold(now map[string]json.RawMessage) {
	was := r.Withheld
	r.Withheld = map[string]time.Time{}
	for name, def := range now {
		if seen, ok := r.Accepted[name]; ok && fingerprint(seen) == fingerprint(def) {
			continue
		}
		since := was[name]
		if since.IsZero() {
			since = time.Now().UTC().Truncate(time.Second)
		}
		r.Withheld[name] = since
	}
}

// accept accepts changes. It accepts none if one of them is outdated.
func (s *store) accept(changes []Change) error {
	var outdated error
	err := s.update(func(r *record) {
		var now map[string]json.RawMessage
		if r.Offer != nil {
			now = r.Offer.definitions()
		}
		for _, c := range changes {
			if readable(now[c.Name]) != c.Is {
				outdated = fmt.Errorf("%s has changed since it was shown: run `toolhost mcp review %s` again", c.Name, s.name)
				return
			}
		}
		accepted := maps.Clone(r.Accepted)
		if accepted == nil {
			accepted = map[string]json.RawMessage{}
		}
		for _, c := range changes {
			accepted[c.Name] = now[c.Name]
			delete(r.Withheld, c.Name)
		}
		maps.DeleteFunc(accepted, func(name string, _ json.RawMessage) bool { return now[name] == nil })
		r.Accepted, r.Reviewed = accepted, nil
	})
	return cmp.Or(outdated, err)
}

// offersResources stands for the resources in a record: their list changes too often to be reviewed.
var offersResources = json.RawMessage(`"It offers resources."`)

// definitions returns all definitions that can be served and that a person must review, by id.
func (o *offer) definitions() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	lists := [][]definition{toolKind.read(o.Tools), promptKind.read(o.Prompts)}
	if o.Own != nil {
		lists = append(lists, templateKind.read(o.Own.Templates), skillKind.read(o.Own.Skills))
	}
	for _, d := range slices.Concat(lists...) {
		if d.refused == nil {
			all[d.id()] = d.raw
		}
	}
	if o.Readable {
		all[resourcesID] = offersResources
	}
	if o.Instructions != "" {
		all[instructionsID] = marshal(o.Instructions)
	}
	return all
}

// The ids of what a server offers once.
const (
	resourcesID    = "resources"
	instructionsID = "instructions"
)

// accepted returns the fingerprint of the accepted definition with an id.
func (s *store) accepted(id string) (pin string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.now.Accepted[id]
	return fingerprint(raw), ok
}

// acceptedSkills returns the definitions of the accepted skills.
func (s *store) acceptedSkills() (all []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, raw := range s.now.Accepted {
		if strings.HasPrefix(id, skillKind.word+" ") {
			all = append(all, raw)
		}
	}
	return all
}

// fingerprint returns the hash of a definition. It does not depend on the order of keys.
func fingerprint(def json.RawMessage) string {
	sum := sha256.Sum256(canonical(def))
	return hex.EncodeToString(sum[:])
}

// A Change is a definition that is withheld.
type Change struct {
	Name  string    `json:"name"` // "tool read_file", "instructions"
	Since time.Time `json:"since"`
	Was   string    `json:"was,omitempty"` // "" for a new definition
	Is    string    `json:"is"`
	// Copies are tools of other servers with names that look alike.
	Copies []string `json:"copies,omitempty"`
}

// Review returns the withheld definitions of a server.
func (g *Gateway) Review(name string) ([]Change, error) {
	s, err := g.server(name)
	if err != nil {
		return nil, err
	}
	r := s.store.get()
	var now map[string]json.RawMessage
	if r.Offer != nil {
		now = r.Offer.definitions()
	}
	var all []Change
	for _, name := range slices.Sorted(maps.Keys(r.Withheld)) {
		c := Change{Name: name, Since: r.Withheld[name], Is: readable(now[name]), Copies: copies(g.sorted(), s, name)}
		if was, ok := r.Accepted[name]; ok {
			c.Was = readable(was)
		}
		all = append(all, c)
	}
	return all, nil
}

// Shown records that these changes of a server were shown to a person.
func (g *Gateway) Shown(name string, changes []Change) error {
	s, err := g.server(name)
	if err != nil {
		return err
	}
	return s.store.update(func(r *record) {
		r.Reviewed = map[string]string{}
		for _, c := range changes {
			r.Reviewed[c.Name] = fingerprint(marshal(c.Is))
		}
	})
}

// Accept accepts changes that [Gateway.Review] returned. It accepts none if a person was shown different ones.
func (g *Gateway) Accept(name string, changes []Change) error {
	s, err := g.server(name)
	if err != nil {
		return err
	}
	if seen := s.store.get().Reviewed; seen != nil {
		for _, c := range changes {
			if seen[c.Name] != fingerprint(marshal(c.Is)) {
				return fmt.Errorf("%s of %s has changed since it was reviewed: run `toolhost mcp review %s` again",
					c.Name, s.Name, s.Name)
			}
		}
	}
	err = s.store.accept(changes)
	g.rebuild(false)
	return err
}

// copies returns the tools of other servers whose names look like name.
func copies(all []*server, of *server, name string) (found []string) {
	name, ok := strings.CutPrefix(name, "tool ")
	if !ok {
		return nil
	}
	for _, s := range all {
		r := s.store.get()
		if s == of || r.Offer == nil {
			continue
		}
		for _, raw := range r.Offer.Tools {
			var t struct{ Name string }
			if json.Unmarshal(raw, &t) == nil && skeleton(t.Name) == skeleton(name) {
				found = append(found, s.Name+"/"+t.Name)
			}
		}
	}
	return found
}
