package repomap

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// The stored form of a tree is one file, named by a hash of the root:
//
//	"eca repo map\n", the format's number and lang.Version, the root;
//	the number of files, and of each: path, size, time (a signed varint), language,
//	  role, a text,
//	  the number of definitions, and of each: kind, line, parent+1, and the positions of its
//	  signature and its name in that text, each as start and length;
//	  the number of uses, 8 bytes of each (little-endian), and then a byte with the count of each;
//	  its imports, a text with a line end after each;
//	4 bytes: CRC-32C of all preceding bytes.
//
// Other numbers are unsigned varints. A text is its length in bytes, followed by the bytes. A racy
// file is stored with a wrong size, so that the next process reads it again.
const (
	storedMagic  = "eca repo map\n"
	storedFormat = 4
	storedExt    = ".map"
	storedAge    = 90 * 24 * time.Hour // of unused maps
)

var errDamaged = errors.New("the stored map is damaged")

func (x *Index) storedPath(root string) string {
	return filepath.Join(x.opts.CacheDir, "repomap", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:32]+storedExt)
}

// load reads the stored form. If it is missing, damaged or of another version, all source files are read
// again.
func (x *Index) load(t *tree) {
	if x.opts.CacheDir == "" {
		return
	}
	data, err := os.ReadFile(x.storedPath(t.root))
	if err != nil {
		return
	}
	if files, err := decode(data, t.root, x.languages()); err == nil {
		t.files = files
		now := x.opts.Now()
		_ = os.Chtimes(x.storedPath(t.root), now, now) // for dropOld
	}
}

// save writes the stored form, if it has changed. It ignores errors: without the stored form, the
// next process reads all files again.
func (x *Index) save(t *tree) {
	if x.opts.CacheDir == "" || t.dirty == 0 || len(t.order) != len(t.files) {
		return
	}
	path := x.storedPath(t.root)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	if err := safeio.WriteFrom(path, 0o600, func(w io.Writer) error { return encode(w, t.root, t.order) }); err != nil {
		return
	}
	t.dirty = 0
	x.dropOld(filepath.Dir(path))
}

// dropOld removes stored maps that have not been used for a long time.
func (x *Index) dropOld(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == storedExt && x.opts.Now().Sub(info.ModTime()) > storedAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// encode writes the stored form in pieces, so that the whole form (about a quarter of the sources' size)
// need not be in memory.
func encode(w io.Writer, root string, files []*file) error {
	const flushSize = 1 << 18
	var sum uint32
	b := append(make([]byte, 0, flushSize), storedMagic...)
	flush := func() error {
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
		_, err := w.Write(b)
		b = b[:0]
		return err
	}
	b = binary.AppendUvarint(b, storedFormat)
	b = binary.AppendUvarint(b, lang.Version)
	b = appendText(b, root)
	b = binary.AppendUvarint(b, uint64(len(files)))
	var texts []byte
	for _, f := range files {
		size := f.size
		if f.racy {
			size = maxBytes + 1
		}
		b = appendText(b, f.path)
		b = binary.AppendUvarint(b, uint64(size))
		b = binary.AppendVarint(b, f.mtime)
		name := ""
		if f.lang != nil {
			name = f.lang.Name
		}
		b = appendText(b, name)
		b = append(b, byte(f.role))
		texts = texts[:0]
		for i := range f.defs {
			texts = append(append(texts, f.defs[i].Signature...), f.defs[i].Name...)
		}
		b = append(binary.AppendUvarint(b, uint64(len(texts))), texts...)
		b = binary.AppendUvarint(b, uint64(len(f.defs)))
		offset := 0
		for i := range f.defs {
			d := &f.defs[i]
			b = append(b, byte(d.Kind))
			b = binary.AppendUvarint(b, uint64(d.Line))
			b = binary.AppendUvarint(b, uint64(d.Parent+1))
			name := offset + len(d.Signature)
			if in := strings.Index(d.Signature, d.Name); in >= 0 {
				name = offset + in
			}
			for _, n := range []int{offset, len(d.Signature), name, len(d.Name)} {
				b = binary.AppendUvarint(b, uint64(n))
			}
			offset += len(d.Signature) + len(d.Name)
		}
		b = binary.AppendUvarint(b, uint64(len(f.uses.Names)))
		for _, name := range f.uses.Names {
			b = binary.LittleEndian.AppendUint64(b, name)
		}
		b = append(b, f.uses.Counts...)
		texts = texts[:0]
		for _, name := range f.uses.Imports {
			texts = append(append(texts, name...), '\n')
		}
		b = append(binary.AppendUvarint(b, uint64(len(texts))), texts...)
		if len(b) >= flushSize/2 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(b, sum))
	return err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// decode decodes the stored form of a root's tree. A matching checksum is not enough, since another
// version or an attacker may have written the file: decode validates every value.
func decode(data []byte, root string, langs *lang.Languages) (map[string]*file, error) {
	if len(data) < 4 || binary.LittleEndian.Uint32(data[len(data)-4:]) != checksum(data[:len(data)-4]) {
		return nil, errDamaged
	}
	r := &decoder{data: data[:len(data)-4]}
	if string(r.take(len(storedMagic))) != storedMagic || r.number(1<<30) != storedFormat || r.number(1<<30) != lang.Version || r.text() != root {
		return nil, errDamaged
	}
	n := r.number(maxFiles)
	files := make(map[string]*file, min(n, len(r.data)))
	for range n {
		f := r.file(langs)
		if r.failed {
			return nil, errDamaged
		}
		files[f.path] = f
	}
	if r.failed || len(r.data) > 0 {
		return nil, errDamaged
	}
	return files, nil
}

// decoder decodes a stored form; failed is set at the first error.
type decoder struct {
	data   []byte
	failed bool
}

func (r *decoder) take(n int) []byte {
	if r.failed || n < 0 || n > len(r.data) {
		r.failed = true
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

// number reads a number up to a limit.
func (r *decoder) number(limit int) int {
	v, n := binary.Uvarint(r.data)
	if r.failed || n <= 0 || v > uint64(limit) {
		r.failed = true
		return 0
	}
	r.data = r.data[n:]
	return int(v)
}

func (r *decoder) text() string { return string(r.take(r.number(1 << 30))) }

func (r *decoder) file(langs *lang.Languages) *file {
	f := &file{path: r.text(), size: int64(r.number(maxBytes + 1))}
	mtime, n := binary.Varint(r.data)
	if n <= 0 {
		r.failed = true
		return f
	}
	r.data = r.data[n:]
	f.mtime = mtime
	name := r.text()
	if f.lang = langs.ByName(name); name != "" && f.lang == nil {
		r.failed = true
	}
	f.landmark = f.lang == nil && isLandmark(f.path)
	f.role = fileRole(r.number(int(roles) - 1))
	texts := r.text()
	defs := r.number(len(r.data))
	if r.failed || defs > 0 && f.lang == nil {
		r.failed = true
		return f
	}
	if defs > 0 {
		f.defs = make([]lang.Definition, defs)
	}
	for i := range f.defs {
		kind := lang.Kind(r.number(255))
		d := lang.Definition{Kind: kind, Line: r.number(maxBytes + 1), Parent: r.number(i) - 1}
		d.Signature = r.substring(texts)
		d.Name = r.substring(texts)
		if r.failed || !kind.Valid() {
			r.failed = true
			return f
		}
		f.defs[i] = d
		f.main = f.main || isMain(&d)
	}
	if uses := r.number(len(r.data) / 9); uses > 0 {
		names, counts := r.take(8*uses), r.take(uses)
		if r.failed {
			return f
		}
		f.uses = lang.Uses{Names: make([]uint64, uses), Counts: bytes.Clone(counts)}
		for i := range f.uses.Names {
			f.uses.Names[i] = binary.LittleEndian.Uint64(names[8*i:])
		}
	}
	if imports := r.text(); imports != "" {
		f.uses.Imports = strings.Split(strings.TrimSuffix(imports, "\n"), "\n")
	}
	return f
}

// substring reads a start and a length, and returns that part of text.
func (r *decoder) substring(text string) string {
	at := r.number(len(text))
	n := r.number(len(text) - at)
	if r.failed {
		return ""
	}
	return text[at : at+n]
}
