// Package text reads and edits text files without changing anything that was
// not asked for.
//
// A file is decoded once ([Decode]) into a string that keeps an exact map back
// to the bytes of the file. A search ([Find]) yields ranges of that string and
// what to put there; [Apply] replaces the bytes of those ranges and copies all
// others. Bytes outside the ranges are therefore the same by construction,
// whatever they are: invalid sequences, mixed line endings, a missing final
// newline, or characters of a legacy charset that do not survive decoding and
// encoding again.
//
// [ReadPage] shows part of a file of any size in bounded memory, [Number] and
// [Diff] give the forms an agent reads.
package text
