package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/skill"
	"github.com/toolhost/toolhost/guard"
)

type (
	// A Skill is an Agent Skill, a directory with instructions.
	Skill = skill.Skill
	// A SkillSource is a directory with skills.
	SkillSource = skill.Source
	// A SkillFile is a file of a skill.
	SkillFile = skill.Content
)

// Skills are the skills that a caller may read.
type Skills struct {
	Policy  *guard.Policy
	Sources []SkillSource
	// Others returns the skills of other servers; nil: there are none.
	Others func() []OtherSkill
}

// An OtherSkill is a skill of another server. URI is the address of its SKILL.md for [Env.ReadResource].
type OtherSkill struct{ Name, Description, URI string }

// others returns the skills of other servers. A server cannot take the name of one of our skills.
func (k Skills) others(own []Skill) []OtherSkill {
	if k.Others == nil {
		return nil
	}
	return slices.DeleteFunc(k.Others(), func(o OtherSkill) bool {
		return slices.ContainsFunc(own, func(s Skill) bool { return called(s, o.Name) })
	})
}

// called reports whether a skill has this name or path.
func called(s Skill, name string) bool { return s.Name == name || s.Path == name }

// maxSkillList limits the names and descriptions in the description of the tool, in bytes.
const maxSkillList = 1500

// maxSkillNames limits the names in the error for an unknown skill, in characters.
const maxSkillNames = 20_000

type skillInput struct {
	Skill string `json:"skill" jsonschema:"its name, as the list shows it"`
	Args  string `json:"args,omitempty" jsonschema:"what to do with it"`
}

// skillTool returns the instructions of a skill.
var skillTool = declare(Tool[skillInput]{
	Name: "Skill", Title: "Use a skill", Brief: "instructions for a kind of task",
	OptIn: true, Hints: Hints{ReadOnly: true, Closed: true}, Permission: guard.ToRead, Limit: resourceLimit,
	ConcurrencySafe: always[skillInput],
	Plan: func(_ context.Context, env *Env, in skillInput) (Plan, error) {
		s, other, err := env.Skills.find(in.Skill)
		if err != nil {
			return Plan{}, err
		}
		if other != "" {
			plan, err := env.ReadResource("", other)
			return plan.withArguments(in.Args), err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.Compute{}}},
			Run: func(context.Context) (Result, error) {
				text := fmt.Sprintf("The skill %s. Its files are in %s; paths in it begin there.\n\n%s\n", s.Path,
					s.Dir, s.Text)
				return Result{Text: text}, nil
			},
		}.withArguments(in.Args), nil
	},
})

// withArguments returns the plan with the arguments after the instructions of a skill.
func (p Plan) withArguments(args string) Plan {
	if run := p.Run; run != nil && args != "" {
		p.Run = func(ctx context.Context) (Result, error) {
			r, err := run(ctx)
			r.Text += "\nArguments: " + args + "\n"
			return r, err
		}
	}
	return p
}

// Load returns the skills. The error says which skills are left out.
func (k Skills) Load() ([]Skill, error) { return skill.Load(k.Sources, k.MayRead) }

// MayRead reports whether the rules let the caller read a file of a skill. A file outside of the workspace is
// allowed, because the user has put it there.
func (k Skills) MayRead(file string) bool {
	path, err := k.Policy.Resolve(file)
	if err != nil {
		return false
	}
	v := readVerdict(k.Policy, path)
	return v.Action == guard.Allow || v.Action == guard.Ask && v.Rule == guard.RuleBoundary
}

// find returns the skill with a name or a path, or the URI of the skill of another server with this name.
func (k Skills) find(name string) (s Skill, other string, err error) {
	all, _ := k.Load() // the doctor reports skills that are left out
	var found []Skill
	var paths []string
	for _, s := range all {
		if called(s, name) {
			found = append(found, s)
		}
		paths = append(paths, s.Path)
	}
	if len(found) == 1 {
		return found[0], "", nil
	} else if len(found) > 1 {
		return Skill{}, "", fmt.Errorf("skill: there are several with the name %q: give the path, %s or %s",
			clippedName(name), found[0].Path, found[1].Path)
	}
	for _, o := range k.others(all) {
		if o.Name == name {
			return Skill{}, o.URI, nil
		}
		paths = append(paths, o.Name)
	}
	return Skill{}, "", fmt.Errorf("skill: there is no skill %q; there are: %s", clippedName(name),
		firstRunes(strings.Join(paths, ", "), maxSkillNames))
}

// Describe returns the list of skills for the description of the tool.
func (k Skills) Describe() string {
	own, _ := k.Load()
	var all []OtherSkill
	for _, s := range own {
		name := s.Name
		if slices.ContainsFunc(own, func(o Skill) bool { return o.Name == s.Name && o.Path != s.Path }) {
			name = s.Path
		}
		all = append(all, OtherSkill{Name: name, Description: s.Description})
	}
	all = append(all, k.others(own)...)
	var b strings.Builder
	for i, s := range all {
		line := fmt.Sprintf("\n- %s: %s", s.Name, firstRunes(strings.Join(strings.Fields(s.Description), " "),
			maxOwnWords/10))
		if b.Len()+len(line) > maxSkillList {
			fmt.Fprintf(&b, "\n- and %d more", len(all)-i)
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// SkillAt returns the skill that a path of a resource belongs to, such as user/NAME/references/a.md, and the file in
// it.
func (k Skills) SkillAt(path string) (s Skill, file string, err error) {
	all, _ := k.Load()
	for _, s := range all {
		if file, ok := strings.CutPrefix(path, s.Path+"/"); ok &&
			k.MayRead(filepath.Join(s.Dir, filepath.FromSlash(file))) {
			return s, file, nil
		}
	}
	return s, "", fmt.Errorf("there is no skill with the file %s", clippedName(path))
}
