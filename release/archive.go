package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is an entry of an archive.
type file struct {
	path string
	mode int64
	body []byte
}

func sha256hex(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func sortByPath(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.path, b.path) })
}

func zipArchive(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.body); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// tarArchive packs files into a .tar.gz archive. With directories, which .deb requires, it adds an entry
// for each directory.
func tarArchive(files []file, at time.Time, directories bool) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	seen := map[string]bool{".": true}
	entry := func(h tar.Header, body []byte) error {
		h.ModTime, h.Format, h.Uname, h.Gname = at.UTC(), tar.FormatUSTAR, "root", "root"
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(body)
		return err
	}
	var parents func(dir string) error
	parents = func(dir string) error {
		if seen[dir] {
			return nil
		}
		seen[dir] = true
		if err := parents(path.Dir(dir)); err != nil {
			return err
		}
		return entry(tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}, nil)
	}
	for _, f := range sortByPath(files) {
		if directories {
			if err := parents(path.Dir(f.path)); err != nil {
				return nil, err
			}
		}
		if err := entry(tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.body))}, f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return out.Bytes(), err
}

// archives writes the archives of one platform: the ones that editor plugins download, which contain
// only eca, and one with all programs and documents.
func (r *release) archives(b *build) error {
	native, err := zipArchive([]file{{b.exe("eca"), 0o755, b.programs["eca"]}}, r.time)
	if err != nil {
		return err
	}
	for _, name := range b.assets {
		if err := r.write(name+".zip", native); err != nil {
			return err
		}
		sum := r.sums[name+".zip"] + "  " + name + ".zip\n"
		if err := os.WriteFile(filepath.Join(r.out, name+".zip.sha256"), []byte(sum), 0o644); err != nil {
			return err
		}
	}
	name := r.archiveName(b.target)
	files := []file{
		{"man/eca.1", 0o644, r.manual},
		{"completions/eca.bash", 0o644, r.completions["bash"]},
		{"completions/_eca", 0o644, r.completions["zsh"]},
		{"completions/eca.fish", 0o644, r.completions["fish"]},
		{"completions/eca.ps1", 0o644, r.completions["powershell"]},
		{"LICENSE-THIRD-PARTY.txt", 0o644, b.licences},
	}
	for program, body := range b.programs {
		files = append(files, file{b.exe(program), 0o755, body})
	}
	for _, document := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		body, err := os.ReadFile(filepath.Join(r.root, document))
		if err != nil {
			return err
		}
		files = append(files, file{document, 0o644, body})
	}
	folder := strings.TrimSuffix(name, ".tar.gz")
	for i := range files {
		files[i].path = folder + "/" + files[i].path
	}
	all, err := tarArchive(files, r.time, false)
	if err != nil {
		return err
	}
	if err := r.write(name, all); err != nil {
		return err
	}
	bom, err := r.sbom(b)
	if err != nil {
		return err
	}
	return r.write(folder+".cdx.json", bom)
}

// archiveName returns the name of the archive with all programs.
func (r *release) archiveName(t target) string {
	return "eca-" + r.version + "-" + t.os + "-" + t.arch + ".tar.gz"
}
