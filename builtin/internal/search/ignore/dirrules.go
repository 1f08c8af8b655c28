package ignore

// Names of the ignore files of a directory, by precedence.
const (
	RgIgnore  = ".rgignore"
	DotIgnore = ".ignore"
	GitIgnore = ".gitignore"
)

// Exclude is where a repository keeps its own excludes, below its root.
const Exclude = ".git/info/exclude"

// DirRules holds the rules of one directory on the way from the file-system root to a file. The zero value has no
// rules.
type DirRules struct {
	Depth int    // how many bytes of an entry's path, as given to Match, lead to this directory
	Above string // for a directory above the walk's root: the path from here to it, ending in a slash
	Rg    *Rules
	Dot   *Rules
	Git   *Rules
	Excl  *Rules
	Repo  bool // the root of a repository: it holds .git or .jj
}

// Size is about how many bytes of memory the rules take.
func (l *DirRules) Size() int64 {
	if l == nil {
		return 0
	}
	return l.Rg.Size() + l.Dot.Size() + l.Git.Size() + l.Excl.Size()
}

// relative turns a path of the walk into one relative to this level.
func (l *DirRules) relative(path string) string {
	if l.Above != "" {
		return l.Above + path
	}
	return path[l.Depth:]
}

// Chain holds all rules that apply to the entries of one directory: the levels that have rules or are the root of a
// repository, nearest first, and the global excludes.
type Chain struct {
	levels []*DirRules
	global *DirRules
	inRepo bool
}

// NewChain returns a chain without rules but the user's global excludes, which are the Git rules of global. They are
// relative to the directory of global, the working root.
func NewChain(global *DirRules) *Chain { return &Chain{global: global} }

// Push returns the chain of a subdirectory with the rules l, which may be nil. It returns c itself if l changes
// nothing.
func (c *Chain) Push(l *DirRules) *Chain {
	if l == nil || !l.Repo && l.Rg == nil && l.Dot == nil && l.Git == nil && l.Excl == nil {
		return c
	}
	n := &Chain{global: c.global, inRepo: c.inRepo || l.Repo}
	n.levels = append(append(n.levels, l), c.levels...)
	return n
}

// Rules reports whether the chain has any rules. Without rules nothing is ignored.
func (c *Chain) Rules() bool { return len(c.levels) > 0 }

// Match judges an entry by its path relative to the root of the walk.
func (c *Chain) Match(path string, dir bool) Verdict {
	var rg, dot, git, excl Verdict
	beyond := !c.inRepo // git's files count in a repository only, and up to its root
	for _, l := range c.levels {
		sub := l.relative(path)
		if rg == None {
			rg = l.Rg.Match(sub, dir)
		}
		if dot == None {
			dot = l.Dot.Match(sub, dir)
		}
		if !beyond && git == None {
			git = l.Git.Match(sub, dir)
		}
		if !beyond && excl == None {
			excl = l.Excl.Match(sub, dir)
		}
		beyond = beyond || l.Repo
	}
	for _, v := range [...]Verdict{rg, dot, git, excl} {
		if v != None {
			return v
		}
	}
	if c.inRepo {
		return c.global.Git.Match(c.global.relative(path), dir)
	}
	return None
}
