package document

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxPages is how many pages of a PDF are read at once.
const MaxPages = 20

// ParsePages reads which pages are asked for: "3", "1-5", or "7-" for what
// follows. Empty means the first ones. It returns the first and the last page,
// counted from 1; of an open range the last is as far as [MaxPages] go. The
// document may well have fewer.
func ParsePages(s string) (from, to int, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 1, MaxPages, nil
	}
	first, last, isRange := strings.Cut(s, "-")
	if from, err = pageNumber(s, first); err != nil {
		return 0, 0, err
	}
	switch {
	case !isRange:
		return from, from, nil
	case strings.TrimSpace(last) == "":
		return from, from + MaxPages - 1, nil
	}
	if to, err = pageNumber(s, last); err != nil {
		return 0, 0, err
	}
	if to < from {
		return 0, 0, fmt.Errorf(`pages "%s" runs backwards: write "%d-%d"`, s, to, from)
	}
	if n := to - from + 1; n > MaxPages {
		return 0, 0, fmt.Errorf(`pages "%s" are %d pages, and at most %d are read at once: begin with "%d-%d"`,
			s, n, MaxPages, from, from+MaxPages-1)
	}
	return from, to, nil
}

// maxPageNumber is far above what a PDF file can hold.
const maxPageNumber = 1 << 30

func pageNumber(all, s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 || n > maxPageNumber {
		return 0, fmt.Errorf(`pages must be a page ("3") or a range ("1-5"), counted from 1, not %q`, all)
	}
	return n, nil
}
