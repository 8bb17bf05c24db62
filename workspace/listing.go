package workspace

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isPath reports whether a query is a path rather than a search.
func isPath(query string) bool {
	for _, prefix := range []string{"/", "~", "./", "../"} {
		if strings.HasPrefix(query, prefix) {
			return true
		}
	}
	return filepath.IsAbs(query)
}

// maxListed is the maximum number of entries read from one folder.
const maxListed = 50_000

// listPath returns the entries of the folder that a query names, including hidden and ignored ones,
// folders first. If there is no such folder, the last name is the prefix of the entries to list.
func listPath(roots []string, query string) []Found {
	query = filepath.ToSlash(query)
	cut := strings.LastIndexByte(query, '/') + 1
	dir, prefix := Abs(roots, query[:cut]), strings.ToLower(query[cut:])
	// The user may be about to type "/a/.git".
	if full := Abs(roots, query); prefix != "." && isDir(full) {
		dir, prefix = full, ""
	}
	if !isDir(dir) {
		return nil // opening other kinds of files may block
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxListed) // a partial list is better than an error
	var dirs, files []Found
	for _, e := range entries {
		if !strings.HasPrefix(strings.ToLower(e.Name()), prefix) {
			continue
		}
		f := Found{Path: filepath.Join(dir, e.Name())}
		if f.Dir = e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(f.Path); f.Dir {
			dirs = append(dirs, f)
		} else {
			files = append(files, f)
		}
	}
	byName := func(a, b Found) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Path), strings.ToLower(b.Path)), cmp.Compare(a.Path, b.Path))
	}
	slices.SortFunc(dirs, byName)
	slices.SortFunc(files, byName)
	out := append(dirs, files...)
	return out[:min(len(out), maxFound)]
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
