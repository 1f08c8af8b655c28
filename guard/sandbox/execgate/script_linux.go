package execgate

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// headSize is how much of a file is read to find its interpreter or loader. The kernel reads scriptHead bytes of a
// script. The program headers of a linked file end within headSize.
const (
	headSize   = 1024
	scriptHead = 256 // BINPRM_BUF_SIZE
)

// scriptLine returns the interpreter that the first line of a file names, and its argument, as the kernel reads them
// (fs/binfmt_script.c). ok is false for a file that is no script.
func scriptLine(head []byte) (interpreter, argument string, ok bool) {
	line := make([]byte, scriptHead) // bytes after the end of the file are zero
	copy(line, head)
	line = line[:scriptHead-1]
	if !bytes.HasPrefix(line, []byte("#!")) {
		return "", "", false
	}
	line = line[2:]
	if end := bytes.IndexByte(append(line[:len(line):len(line)], at(head, scriptHead-1)), '\n'); end >= 0 {
		line = line[:min(end, len(line))]
	} else if name := bytes.TrimLeft(line, " \t"); !bytes.ContainsAny(name, " \t\x00") {
		return "", "", false // the name may be longer than what was read
	}
	line = bytes.TrimLeft(bytes.TrimRight(line, " \t"), " \t")
	end := bytes.IndexAny(line, " \t\x00")
	if end < 0 {
		return string(line), "", len(line) > 0
	}
	interpreter = string(line[:end])
	if line[end] != 0 {
		rest, _, _ := bytes.Cut(bytes.TrimLeft(line[end:], " \t"), []byte{0})
		argument = string(rest)
	}
	return interpreter, argument, interpreter != ""
}

// at returns the byte at index i, or 0 after the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// isLoader reports whether a file is a dynamic loader, which loads and runs the program that it is given. Such a file
// is a shared object, asks for no loader itself, and has the name of one.
func isLoader(head []byte, file io.ReaderAt) bool {
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return false
	}
	f, err := elf.NewFile(file)
	if err != nil || f.Type != elf.ET_DYN || slices.ContainsFunc(f.Progs,
		func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return false
	}
	names, err := f.DynString(elf.DT_SONAME)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "ld") || strings.HasPrefix(name, "libc.") // musl's is its C library
	})
}

// linked reports whether the beginning of a file is that of a 64-bit program that asks for a loader, as most programs
// do.
func linked(head []byte) bool {
	const class, order, offset, size, count, entry = 4, 5, 32, 54, 56, 56
	if len(head) < 64 || head[class] != byte(elf.ELFCLASS64) || head[order] != byte(elf.ELFDATA2LSB) {
		return false
	}
	if binary.LittleEndian.Uint16(head[size:]) != entry {
		return false
	}
	begin := binary.LittleEndian.Uint64(head[offset:])
	for i := range uint64(binary.LittleEndian.Uint16(head[count:])) {
		at := begin + i*entry
		if at >= uint64(len(head))-4 {
			return false
		}
		if elf.ProgType(binary.LittleEndian.Uint32(head[at:])) == elf.PT_INTERP {
			return true
		}
	}
	return false
}
