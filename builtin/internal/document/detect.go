package document

import (
	"bytes"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"github.com/toolhost/toolhost/builtin/internal/text"
)

// Kind says how a file is shown.
type Kind uint8

// The kinds of files. Of a file of the zero Kind only the description is shown.
const (
	OtherFile    Kind = iota // binary content that nothing here can show
	TextFile                 // for [text.ReadPage], in whatever charset
	ImageFile                // for [Image]
	PDFFile                  // for [PDF]
	NotebookFile             // for [ParseNotebook]
)

// DetectBytes is how many bytes from the start of a file [Detect] needs. With fewer it still answers, but may take a
// notebook for text.
const DetectBytes = 64 << 10

// pdfJunk is how far after the start of a file its "%PDF-" may stand: PDF
// readers look for it in the first 1,024 bytes (ISO 32000-1, annex H.3.4.1).
const pdfJunk = 1024

// Detect returns how to show a file, by its first bytes, and a description of its
// kind: "PNG image", "ELF program", "text". The name decides only whether JSON
// is a notebook.
func Detect(head []byte, name string) (Kind, string) {
	// A signature that text cannot begin with is enough, even if little follows.
	if f := formatOf(head); f != nil && (head[0] >= utf8.RuneSelf || bytes.IndexByte(head, 0) >= 0 ||
		text.IsBinary(head)) {
		return ImageFile, f.words
	}
	if isPDF(head) {
		return PDFFile, "PDF document"
	}
	if !text.IsBinary(head) {
		if strings.EqualFold(filepath.Ext(name), ".ipynb") && hasCells([]byte(text.Decode(head).String())) {
			return NotebookFile, "Jupyter notebook"
		}
		return TextFile, textWords(head)
	}
	return OtherFile, binaryWords(head)
}

// isPDF reports whether head has the start of a PDF: at the start of a line, or after binary junk. Text that only
// mentions PDF files is not a PDF.
func isPDF(head []byte) bool {
	const mark = "%PDF-"
	head = head[:min(len(head), pdfJunk+len(mark)+1)]
	i := bytes.Index(head, []byte(mark))
	if i < 0 || i+len(mark) >= len(head) {
		return false
	}
	if v := head[i+len(mark)]; v < '0' || v > '9' {
		return false
	}
	return i == 0 || text.IsBinary(head[:i]) || head[i-1] == '\n' || head[i-1] == '\r'
}

// hasCells reports whether head begins a JSON object with the member "cells". head may be cut off anywhere.
func hasCells(head []byte) bool {
	i := skipSpace(head, 0)
	if i >= len(head) || head[i] != '{' {
		return false
	}
	for i = skipSpace(head, i+1); i < len(head) && head[i] == '"'; i = skipSpace(head, i+1) {
		end := skipString(head, i)
		colon := skipSpace(head, end)
		if colon >= len(head) || head[colon] != ':' {
			return false
		}
		if unquote(head[i:end]) == "cells" {
			return true
		}
		i = skipSpace(head, skipValue(head, skipSpace(head, colon+1)))
		if i >= len(head) || head[i] != ',' {
			return false
		}
	}
	return false
}

// textWords describes text, and names HTML, XML and JSON, which files of other types may contain.
func textWords(head []byte) string {
	start := bytes.TrimLeft(bytes.TrimPrefix(head, utf8BOM), " \t\r\n")
	if len(start) == 0 || !strings.ContainsRune("<{[", rune(start[0])) {
		return "text" // most text: a closer look would cost more than showing a small file
	}
	switch mimetype.Detect(head).String() {
	case "text/html; charset=utf-8":
		return "HTML text"
	case "image/svg+xml":
		return "SVG text"
	case "application/json":
		return "JSON text"
	}
	return "text"
}

// kindWords describes the common kinds of content by the types of package mimetype. For a type that is missing the
// description of its parent is used ("a zip archive" for a JAR), or its name.
var kindWords = map[string]string{
	"application/x-elf":                             "ELF program",
	"application/x-executable":                      "ELF program",
	"application/x-sharedlib":                       "ELF shared library",
	"application/x-object":                          "ELF object file",
	"application/x-coredump":                        "ELF core dump",
	"application/x-mach-binary":                     "Mach-O program",
	"application/vnd.microsoft.portable-executable": "Windows program",
	"application/wasm":                              "WebAssembly module",
	"application/x-java-applet":                     "Java class file",
	"application/gzip":                              "gzip archive",
	"application/zip":                               "zip archive",
	"application/x-tar":                             "tar archive",
	"application/x-bzip2":                           "bzip2 archive",
	"application/x-xz":                              "xz archive",
	"application/zstd":                              "zstd archive",
	"application/x-7z-compressed":                   "7-Zip archive",
	"application/x-rar-compressed":                  "RAR archive",
	"application/x-archive":                         "ar archive",
	"application/vnd.debian.binary-package":         "Debian package",
	"application/x-rpm":                             "RPM package",
	"application/jar":                               "Java archive",
	"application/vnd.sqlite3":                       "SQLite database",
	"application/vnd.apache.parquet":                "Parquet file",
	"application/x-hdf5":                            "HDF5 file",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "Word document",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "Excel workbook",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint presentation",
	"application/msword":            "Word document",
	"application/vnd.ms-excel":      "Excel workbook",
	"application/vnd.ms-powerpoint": "PowerPoint presentation",
	"application/epub+zip":          "EPUB book",
	"image/heic":                    "HEIC image",
	"image/avif":                    "AVIF image",
	"image/jxl":                     "JPEG XL image",
	"image/jp2":                     "JPEG 2000 image",
	"image/x-icon":                  "icon",
	"image/vnd.adobe.photoshop":     "Photoshop document",
	"audio/mpeg":                    "MP3 audio",
	"audio/wav":                     "WAV audio",
	"audio/flac":                    "FLAC audio",
	"audio/ogg":                     "Ogg audio",
	"video/mp4":                     "MP4 video",
	"video/webm":                    "WebM video",
	"video/quicktime":               "QuickTime video",
	"font/ttf":                      "TrueType font",
	"font/otf":                      "OpenType font",
	"font/woff":                     "WOFF font",
	"font/woff2":                    "WOFF2 font",
}

func binaryWords(head []byte) string {
	found := mimetype.Detect(head)
	for m := found; m != nil; m = m.Parent() {
		if words, ok := kindWords[m.String()]; ok {
			return words
		}
	}
	if found.Is("application/octet-stream") {
		return "binary data"
	}
	return found.String() + " data"
}
