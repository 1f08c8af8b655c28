// Package pattern reads the regular-expression syntax of Rust's regex crate,
// which is what people and models know from ripgrep, into a program of
// regexp/syntax, and finds the literals that every match must contain.
package pattern
