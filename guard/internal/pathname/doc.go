// Package pathname compares the names of files as rules do. Absolute paths are brought into one form on every
// system, with slashes ([Slashed]), and into one [Spelling], and are compared element by element ([Within]).
package pathname
