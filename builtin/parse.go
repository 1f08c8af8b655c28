package builtin

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The functions of this file are only used to choose the text of a command's result. The guard judges commands
// separately.

// eachNode calls f for the nodes of statements, as [syntax.Walk] does.
func eachNode(statements []*syntax.Stmt, f func(syntax.Node) bool) {
	for _, stmt := range statements {
		syntax.Walk(stmt, f)
	}
}

// wordText returns the text of a word, or "" if it is not known before the line runs.
func wordText(w *syntax.Word) string {
	var text strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
		case *syntax.SglQuoted:
			if part.Dollar {
				return ""
			}
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) {
					return ""
				}
				text.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return text.String()
}
