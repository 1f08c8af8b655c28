package search

import (
	"context"
	"errors"
)

// Grep searches file contents. Errors are of the query (a *PatternError, an
// unknown type, a path that is gone) or ctx's; files that cannot be read are
// counted, not errors.
func (e *Engine) Grep(ctx context.Context, q GrepQuery) (*GrepResult, error) {
	return nil, errors.ErrUnsupported
}

// Glob lists the files whose paths match.
func (e *Engine) Glob(ctx context.Context, q GlobQuery) (*GlobResult, error) {
	return nil, errors.ErrUnsupported
}
