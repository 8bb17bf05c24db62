package cluster

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
)

// Limits of a bundle.
const (
	maxBundleFiles = 50_000
	maxBundleBytes = 1 << 30
)

// bundleFiles lists the files that a manifest needs, relative to its folder: the manifest,
// datasets, fixtures, hidden tests, build contexts, files that programs may read, and the files
// that the target names. Absolute paths refer to the worker's own files.
func bundleFiles(m *runtime.Manifest, include []string) ([]string, error) {
	dir := filepath.Dir(m.Path)
	var out []string
	var errs []error
	add := func(path string) {
		switch {
		case path == "" || filepath.IsAbs(path):
		case !filepath.IsLocal(path):
			errs = append(errs, fmt.Errorf("%s is outside the manifest's folder; a cluster gets only files in that folder", path))
		default:
			out = append(out, filepath.Clean(path))
		}
	}
	add(filepath.Base(m.Path))
	for _, sc := range m.Scenarios {
		if sc.Rows != nil {
			add(sc.Rows.Source)
		}
		add(sc.Setup.Dataset)
		add(sc.Setup.Tests)
		if w := sc.Setup.Workspace; w != nil {
			add(w.Copy)
		}
		if e := sc.Setup.Environment; e != nil {
			if e.Dockerfile != "" {
				add(filepath.Dir(e.Dockerfile))
			}
			for _, path := range slices.Concat(e.Agent.Read, e.Graders.Read) {
				add(path)
			}
		}
	}
	for _, path := range include {
		add(path)
	}
	for word := range strings.FieldsSeq(m.Target) {
		if info, err := os.Stat(filepath.Join(dir, word)); err == nil && info.Mode().IsRegular() && filepath.IsLocal(word) {
			add(word)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), errors.Join(errs...)
}

// pack writes an archive with files and folders of dir, and returns its digest. The archive is the
// same for the same contents.
func pack(dir string, files []string, to io.Writer) (sum string, err error) {
	h := sha256.New()
	packed := gzip.NewWriter(io.MultiWriter(to, h))
	p := &packer{dir: dir, out: tar.NewWriter(packed), seen: map[string]bool{}}
	for _, path := range files {
		if err := filepath.WalkDir(filepath.Join(dir, path), p.add); err != nil {
			return "", err
		}
	}
	if err := errors.Join(p.out.Close(), packed.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

type packer struct {
	dir   string
	out   *tar.Writer
	seen  map[string]bool
	files int
	size  int64
}

func (p *packer) add(path string, e fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := filepath.Rel(p.dir, path)
	if err != nil || p.seen[name] {
		return err
	}
	p.seen[name] = true
	info, err := e.Info()
	if err != nil {
		return err
	}
	if p.files, p.size = p.files+1, p.size+info.Size(); p.files > maxBundleFiles || p.size > maxBundleBytes {
		return fmt.Errorf("the manifest refers to more than %d files or %d MiB: leave out files that the agent does not need", maxBundleFiles, maxBundleBytes>>20)
	}
	header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Format: tar.FormatPAX}
	switch {
	case e.IsDir():
		header.Typeflag, header.Mode = tar.TypeDir, 0o755
		return p.out.WriteHeader(header)
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
		if !staysInside(header.Name, header.Linkname) {
			return fmt.Errorf("%s is a link that leads out of the manifest's folder", name)
		}
		return p.out.WriteHeader(header)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file, a folder or a link", name)
	}
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := p.out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(p.out, f)
	return err
}

// staysInside reports whether a symlink in an archive points into the archive.
func staysInside(name, link string) bool {
	link = filepath.FromSlash(link)
	return !filepath.IsAbs(link) && filepath.IsLocal(filepath.Join(filepath.Dir(filepath.FromSlash(name)), link))
}

// unpack extracts an archive to an empty folder. It writes nothing outside that folder.
func unpack(from io.Reader, dir string) error {
	plain, err := gzip.NewReader(from)
	if err != nil {
		return fmt.Errorf("unpack the manifest's files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in := tar.NewReader(plain)
	files, size := 0, int64(0)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack the manifest's files: %w", err)
		}
		if files, size = files+1, size+h.Size; files > maxBundleFiles || size > maxBundleBytes || h.Size < 0 {
			return fmt.Errorf("unpack the manifest's files: more than %d files or %d MiB", maxBundleFiles, maxBundleBytes>>20)
		}
		if err := extract(root, h, in); err != nil {
			return fmt.Errorf("unpack the manifest's files: %s: %w", h.Name, err)
		}
	}
}

func extract(root *os.Root, h *tar.Header, content io.Reader) error {
	name := filepath.FromSlash(h.Name)
	if !filepath.IsLocal(name) {
		return errors.New("it is outside the archive")
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if !staysInside(h.Name, h.Linkname) {
			return errors.New("the link leads out of the archive")
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode)&0o755|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	}
	return errors.New("it is not a file, a folder or a link")
}
