package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin"
)

// skillsExtension is the extension of servers that list skills (SEP-2640).
const skillsExtension = "io.modelcontextprotocol/skills"

// A Skill is a skill of a server, as clients see it. Its URIs start with [Scheme]. The list of its files has their
// digests, so that a person who accepts a skill accepts their content.
type Skill struct {
	URI         string          `json:"uri"` // of SKILL.md
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []SkillFile     `json:"resources"`
	Server      string          `json:"-"` // empty for a skill of this host
}

// A SkillFile is a file of a skill.
type SkillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// skillDigest matches the digests of files.
var skillDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkSkill returns an error for a skill whose files are not all named with their digests.
func checkSkill(raw json.RawMessage) error {
	var s Skill
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	for _, f := range s.Resources {
		if f.URI != cleanText(f.URI, maxDescription) || !skillDigest.MatchString(f.Digest) {
			return fmt.Errorf("its file %q has the digest %q, not sha256: and 64 hexadecimal digits", cleanText(f.URI, 80), cleanText(f.Digest, 80))
		}
	}
	if !slices.ContainsFunc(s.Resources, func(f SkillFile) bool { return f.URI == s.URI }) {
		return fmt.Errorf("its files do not include %s itself", cleanText(s.URI, 80))
	}
	return nil
}

// Skills returns the accepted skills that the servers list, by server.
func (c Consults) Skills() (all []Skill) {
	c.readable(func(s *server, o *listing) {
		found, of := offered[Skill](skillKind.read(o.Skills), s.address)
		for i, k := range found {
			if c.withholds(s, of[i]) {
				continue
			}
			k.Server = s.Name
			for j := range k.Resources {
				k.Resources[j].URI = s.address(k.Resources[j].URI)
			}
			all = append(all, k)
		}
	})
	return all
}

// skillFile returns the digest of a file of a skill that the server lists to the caller; "" if uri is none. It fails
// while the skill is withheld.
func (c Consults) skillFile(s *server, uri string) (digest string, err error) {
	all := s.listing(c.principal)
	if all == nil {
		return "", nil
	}
	for _, d := range skillKind.read(all.Skills) {
		var k Skill
		if d.refused != nil || json.Unmarshal(d.raw, &k) != nil {
			continue
		}
		i := slices.IndexFunc(k.Resources, func(f SkillFile) bool { return f.URI == uri })
		if i < 0 {
			continue
		}
		if c.withholds(s, d) {
			return "", s.review(d.id(), d.pin)
		}
		return k.Resources[i].Digest, nil
	}
	return "", nil
}

// sameContent has read convert a response to resources/read, if its content has the digest.
func sameContent(name, uri, digest string, read reader) reader {
	return func(ctx context.Context, env *builtin.Env, raw json.RawMessage) (builtin.Result, error) {
		var r struct {
			Contents []struct{ Text, Blob string }
		}
		if err := json.Unmarshal(raw, &r); err != nil || len(r.Contents) != 1 {
			return builtin.Result{}, fmt.Errorf("the answer of the server %s to a request for %s is not one content", name, cleanText(uri, maxLine))
		}
		content, err := []byte(r.Contents[0].Text), error(nil)
		if r.Contents[0].Blob != "" {
			content, err = base64.StdEncoding.DecodeString(r.Contents[0].Blob)
		}
		sum := sha256.Sum256(content)
		if is := "sha256:" + hex.EncodeToString(sum[:]); err != nil || is != digest {
			return builtin.Result{}, withheldErrorf("%s of the server %s is withheld: its content is not that of the skill that was accepted. "+
				"A person must review it with `toolhost mcp review %s`", cleanText(uri, maxLine), name, name)
		}
		return read(ctx, env, raw)
	}
}

// listsSkills reports whether the server has declared skills, which it serves as resources.
func (s *session) listsSkills() bool {
	_, declared := s.capabilities.Extensions[skillsExtension]
	return declared && s.capabilities.Resources != nil
}

// Name returns the name by which the tool Skill knows the skill: SERVER/NAME.
func (k Skill) Name() string {
	dir := strings.TrimSuffix(k.URI, "/SKILL.md")
	return k.Server + "/" + cleanName(dir[strings.LastIndex(dir, "/")+1:])
}

// Description returns the description in the frontmatter.
func (k Skill) Description() string {
	var head struct{ Description string }
	_ = json.Unmarshal(k.Frontmatter, &head) // then there is none
	return head.Description
}
