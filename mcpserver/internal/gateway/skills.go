package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	var head map[string]any
	if json.Unmarshal(s.Frontmatter, &head) != nil || head == nil {
		return errors.New("its frontmatter is not an object")
	}
	for _, f := range s.Resources {
		if strings.HasPrefix(f.URI, viewScheme) { // clients read these without naming the server
			return fmt.Errorf("the URI of its file %q starts with %s, which is for views",
				cleanText(f.URI, 80), viewScheme)
		}
		if f.URI != cleanText(f.URI, maxDescription) || !skillDigest.MatchString(f.Digest) {
			return fmt.Errorf("its file %q has the digest %q, not sha256: and 64 hexadecimal digits",
				cleanText(f.URI, 80), cleanText(f.Digest, 80))
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

// skillFile returns the digest of a file of a skill that the server lists to the caller, or of one that was accepted
// and is not listed any more; "" if uri is none. It fails while the skill is withheld.
func (c Consults) skillFile(s *server, uri string) (digest string, err error) {
	if all := s.listing(c.principal); all != nil {
		for _, d := range skillKind.read(all.Skills) {
			if d.refused != nil {
				continue
			}
			if digest := digestIn(d.raw, uri); digest == "" {
				continue
			} else if c.withholds(s, d) {
				return "", s.review(d.id(), d.pin)
			} else {
				return digest, nil
			}
		}
	}
	if !s.pins() || c.principal != localPrincipal && s.sharing() != "host" {
		return "", nil
	}
	for _, raw := range s.store.acceptedSkills() {
		if digest = digestIn(raw, uri); digest != "" {
			break
		}
	}
	return digest, nil
}

// digestIn returns the digest of a file in the definition of a skill; "" if the skill does not have it.
func digestIn(raw json.RawMessage, uri string) string {
	var k Skill
	if json.Unmarshal(raw, &k) == nil {
		for _, f := range k.Resources {
			if f.URI == uri {
				return f.Digest
			}
		}
	}
	return ""
}

// sameContent has read convert a response to resources/read, if its content has the digest. It passes on the content
// and its type alone: the digest says nothing of other members.
func sameContent(name, uri, digest string, read reader) reader {
	return func(ctx context.Context, env *builtin.Env, raw json.RawMessage) (builtin.Result, error) {
		var r struct{ Contents []map[string]any }
		if err := json.Unmarshal(raw, &r); err != nil || len(r.Contents) != 1 {
			return builtin.Result{}, fmt.Errorf("the answer of the server %s to a request for %s is not one content",
				name, cleanText(uri, maxLine))
		}
		one := map[string]any{"uri": uri}
		if mime, ok := r.Contents[0]["mimeType"].(string); ok {
			one["mimeType"] = mime
		}
		var content []byte
		var err error
		if blob, ok := r.Contents[0]["blob"].(string); ok {
			content, err = base64.StdEncoding.DecodeString(blob)
			one["blob"] = blob
		} else {
			text, _ := r.Contents[0]["text"].(string)
			content, one["text"] = []byte(text), text
		}
		sum := sha256.Sum256(content)
		if is := "sha256:" + hex.EncodeToString(sum[:]); err != nil || is != digest {
			return builtin.Result{}, withheldErrorf("%s of the server %s is withheld: its content is not that of the skill "+
				"that was accepted. "+
				"A person must review it with `toolhost mcp review %s`", cleanText(uri, maxLine), name, name)
		}
		return read(ctx, env, marshal(map[string]any{"contents": []any{one}}))
	}
}

// listsSkills reports whether the server has declared skills, which it serves as resources.
func (s *session) listsSkills() bool {
	_, declared := s.capabilities.Extensions[skillsExtension]
	return declared && s.capabilities.Resources != nil
}

// Name returns the name by which the tool Skill knows the skill: SERVER/PATH.
func (k Skill) Name() string {
	uri := k.URI
	if k.Server != "" {
		uri = strings.TrimPrefix(uri, Scheme+k.Server+"/")
	}
	return k.Server + "/" + skillPath(uri)
}

// skillPath returns the part of the URI of a SKILL.md that names the skill: acme/refunds of
// skill://acme/refunds/SKILL.md.
func skillPath(uri string) string {
	if _, rest, ok := strings.Cut(uri, "://"); ok {
		uri = rest
	}
	parts := strings.Split(strings.TrimSuffix(uri, "/SKILL.md"), "/")
	for i := range parts {
		parts[i] = cleanName(parts[i])
	}
	return strings.Join(parts, "/")
}

// Description returns the description in the frontmatter.
func (k Skill) Description() string {
	var head struct{ Description string }
	_ = json.Unmarshal(k.Frontmatter, &head) // then there is none
	return head.Description
}
