package sandbox

import (
	"encoding/binary"
	"io"
	"os"
	"strings"
)

// loaderOf returns the dynamic loader of an ELF file, or "" if the file has no loader or is not an ELF
// file. It does not use debug/elf, which reads the whole file's structure and makes eca 74 KB larger.
func loaderOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const (
		class64    = 2       // the class of 64-bit files
		bigEndian  = 2       // a byte order
		loader     = 3       // the type of a segment with the loader's name
		maxTable   = 1 << 20 // bytes
		maxName    = 4096    // bytes
		headerSize = 64
	)
	var header [headerSize]byte
	if n, err := io.ReadFull(f, header[:]); n < 52 || err != nil && n < headerSize && header[4] == class64 || string(header[:4]) != "\x7fELF" {
		return ""
	}
	var order binary.ByteOrder = binary.LittleEndian
	if header[5] == bigEndian {
		order = binary.BigEndian
	}
	offset, size, count := int64(order.Uint32(header[28:])), order.Uint16(header[42:]), order.Uint16(header[44:])
	minSize := uint16(32)
	if header[4] == class64 {
		offset, size, count, minSize = int64(order.Uint64(header[32:])), order.Uint16(header[54:]), order.Uint16(header[56:]), 56 //nolint:gosec // ReadAt refuses negative offsets
	}
	table := make([]byte, min(int(size)*int(count), maxTable))
	if _, err := f.ReadAt(table, offset); size < minSize || err != nil {
		return ""
	}
	for ; len(table) >= int(size); table = table[size:] {
		if order.Uint32(table) != loader {
			continue
		}
		at, length := int64(order.Uint32(table[4:])), uint64(order.Uint32(table[16:]))
		if header[4] == class64 {
			at, length = int64(order.Uint64(table[8:])), order.Uint64(table[32:]) //nolint:gosec // as above
		}
		name := make([]byte, min(length, maxName))
		if _, err := f.ReadAt(name, at); err != nil {
			return ""
		}
		return strings.TrimRight(string(name), "\x00")
	}
	return ""
}
