package document

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxPages is how many pages of a PDF are read at once.
const MaxPages = 20

// ParsePages parses a range of pages: "3", "1-5", or "7-" for that page and those after it. An empty range means the
// first pages. It returns the first and the last page, counted from 1; an open range has [MaxPages] pages. The
// document may have fewer.
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
