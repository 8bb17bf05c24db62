package contexts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of one folder.
const (
	maxDirBytes   = 256 << 10
	maxDirFiles   = 200
	maxDirVisited = 2000 // files and folders that are visited
	maxDirNamed   = 20   // omitted files that the model gets the names of
)

// addDirectory adds the text files below a folder, except ignored ones. The model also gets the names
// of omitted files, so that it does not take a part for the whole.
func (r *resolver) addDirectory(dir string) error {
	real := workspace.Resolve(dir)
	if r.existing["directory "+real] {
		return nil
	}
	r.existing["directory "+real] = true
	var omitted []string
	visited, files, added, size := 0, 0, 0, 0
	err := workspace.Walk(r.ctx, dir, func(f workspace.File) error {
		if visited++; visited > maxDirVisited {
			return filepath.SkipAll
		}
		if f.Dir {
			return nil
		}
		files++
		key := fileKey(filepath.Join(real, filepath.FromSlash(f.Rel)))
		if r.existing[key] {
			return nil
		}
		b, reason := readMember(f.Path, maxDirFiles-added, min(maxDirBytes-size, maxTotal-r.size))
		if reason == nil {
			reason = r.addBlock(key, b)
		}
		if reason == nil {
			added, size = added+1, size+len(b.Text)
		} else {
			omitted = append(omitted, f.Rel+" "+reason.Error())
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read", dir)
	case files == 0 && visited <= maxDirVisited:
		return fmt.Errorf("%s has no files (hidden and ignored ones do not count)", dir)
	}
	if n := len(omitted) - maxDirNamed; n > 0 {
		omitted = append(omitted[:maxDirNamed], fmt.Sprintf("%d more files", n))
	}
	if visited > maxDirVisited {
		omitted = append(omitted, fmt.Sprintf("everything after its first %d entries", maxDirVisited))
	}
	if len(omitted) == 0 {
		return nil
	}
	reason := strings.Join(omitted, ", ")
	_ = r.addBlock("omitted "+dir, Block{Label: dir, Text: "Not all files of this folder are given. Left out: " + reason})
	return fmt.Errorf("files of %s: %s", dir, reason)
}

// readMember reads a file in a folder, if it fits. Symlinks are not followed: they may lead out of the
// folder.
func readMember(path string, files, bytes int) (Block, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return Block{}, errors.New("cannot be read")
	case files <= 0:
		return Block{}, fmt.Errorf("is beyond the first %d files", maxDirFiles)
	case info.Mode().IsRegular() && info.Size() > int64(bytes):
		return Block{}, fmt.Errorf("has %d bytes, which is more than there is room for", info.Size())
	}
	b, err := readFile(path, info)
	if b.Data != nil {
		return Block{}, errors.New("is an image")
	}
	return b, err
}
