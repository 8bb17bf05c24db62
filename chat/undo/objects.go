package undo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/esrp/artifact"
)

// objects stores contents of files by their hashes, each in its own file. Only the holder of
// record.lock adds or removes contents.
type objects struct {
	dir  string
	used int64 // bytes of all contents
	max  int64
}

// errNoRoom is returned if the contents would exceed their limit (max).
var errNoRoom = errors.New("the space for undo is used up")

// inMemory is the size, in bytes, up to which content is read into memory and hashed before it is
// written.
const inMemory = 1 << 20

// put stores the content of a file and returns its hash. size is the expected size, in bytes.
func (o *objects) put(content io.Reader, size int64) (name string, err error) {
	if size <= inMemory {
		data, err := io.ReadAll(io.LimitReader(content, maxFile+1))
		if err != nil {
			return "", err
		}
		return o.putData(data)
	}
	if o.used+size > o.max {
		return "", errNoRoom
	}
	f, err := os.CreateTemp(o.dir, "new-*")
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(o.dir, privateDirMode); err != nil {
			return "", err
		}
		f, err = os.CreateTemp(o.dir, "new-*")
	}
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(content, maxFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	name = hex.EncodeToString(sum.Sum(nil))
	if o.has(name, n) {
		return name, nil
	}
	target := o.path(name)
	err = os.Rename(f.Name(), target)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(target), privateDirMode); err == nil {
			err = os.Rename(f.Name(), target)
		}
	}
	if err == nil {
		o.used += n
	}
	return name, err
}

// putData stores a content and returns its hash. If the process dies, an incomplete file remains, which
// is ignored because of its size.
func (o *objects) putData(data []byte) (name string, err error) {
	name = artifact.Hash(data)
	size := int64(len(data))
	if o.has(name, size) {
		return name, nil
	}
	if o.used+size > o.max {
		return "", errNoRoom
	}
	const mode = 0o600
	err = os.WriteFile(o.path(name), data, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(o.path(name)), privateDirMode); err == nil {
			err = os.WriteFile(o.path(name), data, mode)
		}
	}
	if err != nil {
		_ = os.Remove(o.path(name))
		return "", err
	}
	o.used += size
	return name, nil
}

// get returns the content with a hash.
func (o *objects) get(name string) ([]byte, error) {
	data, err := os.ReadFile(o.path(name))
	if err == nil && artifact.Hash(data) != name {
		err = errors.New("it is damaged")
	}
	return data, err
}

// has reports whether a content is stored completely. A crash may have left an incomplete file.
func (o *objects) has(name string, size int64) bool {
	info, err := os.Lstat(o.path(name))
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

func (o *objects) path(name string) string { return filepath.Join(o.dir, name[:2], name[2:]) }

// sizes returns the sizes of all stored contents, and of files that a dead process left.
func (o *objects) sizes() (map[string]int64, error) {
	out := map[string]int64{}
	err := filepath.WalkDir(o.dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || d.IsDir():
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // removed in the meantime
		}
		rel, err := filepath.Rel(o.dir, file)
		out[strings.ReplaceAll(rel, string(filepath.Separator), "")] = info.Size()
		return err
	})
	return out, err
}

// sweep removes the contents that are not needed, and adds up the size of the others.
func (o *objects) sweep(needed func(name string) bool) error {
	sizes, err := o.sizes()
	if err != nil {
		return err
	}
	o.used = 0
	for name, size := range sizes {
		if needed(name) {
			o.used += size
			continue
		}
		file := o.path(name)
		if strings.HasPrefix(name, "new-") {
			file = filepath.Join(o.dir, name)
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
