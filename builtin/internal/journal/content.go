package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// A Blob identifies a content. The zero Blob means that there is no file. Blobs are equal if the contents are.
type Blob struct {
	Sum  string `json:"sum"`  // SHA-256, in lower-case hexadecimal
	Size int64  `json:"size"` // bytes
}

// BlobOf returns the Blob of a content, which may be given in pieces and may be empty.
func BlobOf(content ...[]byte) Blob {
	hash := sha256.New()
	size := 0
	for _, piece := range content {
		hash.Write(piece)
		size += len(piece)
	}
	return Blob{Sum: hex.EncodeToString(hash.Sum(nil)), Size: int64(size)}
}

// BlobOfHash returns the Blob of a content whose SHA-256 is known.
func BlobOfHash(sum Sum, size int64) Blob {
	return Blob{Sum: hex.EncodeToString(sum[:]), Size: size}
}

// Hash returns the SHA-256; ok is false if b means no file.
func (b Blob) Hash() (sum Sum, ok bool) {
	if len(b.Sum) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(b.Sum))
	return sum, err == nil
}

// IsZero reports whether b means no file.
func (b Blob) IsZero() bool { return b == Blob{} }

func (b Blob) valid() bool { return b.IsZero() || b.Size >= 0 && isSum(b.Sum) }

// isSum reports whether a text is a SHA-256 in lower-case hexadecimal.
func isSum(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == hex.EncodedLen(sha256.Size)
}

// String returns the beginning of the hash and the size.
func (b Blob) String() string {
	if b.IsZero() {
		return "no file"
	}
	if b.Size == 1 {
		return fmt.Sprintf("%.8s (1 byte)", b.Sum)
	}
	return fmt.Sprintf("%.8s (%d bytes)", b.Sum, b.Size)
}

// errOther reports that a path exists and is not a regular file.
var errOther = errors.New("it is not a regular file")
