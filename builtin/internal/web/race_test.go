//go:build race

package web

// lineWords is how many words the longest line of a test has, fifty times the headings of the longest page. The race detector looks at
// the whole line for each word, and allocates more.
const lineWords = 20_000
