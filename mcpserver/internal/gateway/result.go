package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/builtin"
)

// A part is one of the content of a result.
type part struct {
	Type        string
	Text        string
	Data        string
	MIMEType    string
	URI         string
	Name        string
	Description string
	Resource    *struct {
		URI      string
		MIMEType string
		Text     *string
		Blob     string
	}
}

// result makes a result of this host of one of a server. What is not known is noted and kept as it came.
func (s *server) result(env *builtin.Env, raw json.RawMessage) (builtin.Result, error) {
	var r struct {
		Content           []json.RawMessage
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return builtin.Result{}, fmt.Errorf("its result cannot be read: %w", err)
	}
	out := builtin.Result{IsError: r.IsError}
	var texts []string
	for _, c := range r.Content {
		text, image := s.content(c)
		if image != nil {
			out.Images = append(out.Images, *image)
			continue
		}
		texts = append(texts, text)
	}
	if has := len(r.StructuredContent) > 0 && string(r.StructuredContent) != "null"; has {
		if len(texts) == 0 && len(out.Images) == 0 {
			texts = append(texts, string(r.StructuredContent))
		}
		if len(r.StructuredContent) <= maxStructured {
			out.Structured = r.StructuredContent
		} else if len(r.Content) > 0 {
			texts = append(texts, keepJSON(env, "The structured content", r.StructuredContent))
		}
	}
	out.Text = strings.Join(texts, "\n")
	if out.Text == "" && len(out.Images) == 0 {
		out.Text = "(no content)"
	}
	return out, nil
}

// content is one part of a result as text, or as an image. Addresses of resources are given as [Consults.Read] takes them.
func (s *server) content(raw json.RawMessage) (string, *builtin.Image) {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return "[A part that cannot be read: " + cleanText(string(raw), maxErrorBody) + "]", nil
	}
	switch p.Type {
	case "text":
		return p.Text, nil
	case "image":
		data, err := base64.StdEncoding.DecodeString(p.Data)
		if err != nil || !knownImage(p.MIMEType) {
			return fmt.Sprintf("[An image of the type %q that cannot be shown.]", cleanText(p.MIMEType, 80)), nil
		}
		return "", &builtin.Image{Data: data, MIME: p.MIMEType}
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[Resource %s: %s] %s", cleanText(p.Name, 200), s.address(cleanText(p.URI, maxLine)), cleanText(p.Description, maxLine))), nil
	case "resource":
		if p.Resource == nil {
			return "[A resource without content.]", nil
		}
		uri := s.address(cleanText(p.Resource.URI, maxLine))
		if p.Resource.Text != nil {
			return fmt.Sprintf("[Resource %s]\n%s", uri, *p.Resource.Text), nil
		}
		if data, err := base64.StdEncoding.DecodeString(p.Resource.Blob); err == nil && knownImage(p.Resource.MIMEType) {
			return "", &builtin.Image{Data: data, MIME: p.Resource.MIMEType}
		}
		return fmt.Sprintf("[Resource %s: %d bytes of %s, which cannot be shown.]", uri, len(p.Resource.Blob)*3/4, cleanText(p.Resource.MIMEType, 80)), nil
	case "audio":
		return fmt.Sprintf("[%d bytes of %s, which cannot be shown.]", len(p.Data)*3/4, cleanText(p.MIMEType, 80)), nil
	}
	return fmt.Sprintf("[A part of the unknown type %q: %s]", cleanText(p.Type, 80), cleanText(string(raw), maxErrorBody)), nil
}

func knownImage(kind string) bool {
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// keepJSON keeps JSON that is too long for a result, and says where.
func keepJSON(env *builtin.Env, what string, raw json.RawMessage) string {
	if env.Results == nil {
		return fmt.Sprintf("[%s is %d bytes long and left out.]", what, len(raw))
	}
	fitted, err := env.Results.Fit(string(raw), 1)
	if err != nil || fitted.Path == "" {
		return fmt.Sprintf("[%s is %d bytes long and could not be kept.]", what, len(raw))
	}
	return fmt.Sprintf("[%s is %d bytes long and is kept in %s]", what, len(raw), fitted.Path)
}
