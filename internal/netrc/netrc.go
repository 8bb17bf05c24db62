// Package netrc finds credentials in netrc files, which curl, git and others use too: machine,
// login, password, account and port. Macros are skipped.
//
// Errors name files and lines but never content, and printing or logging an entry does not show its
// password. Files are read each time and never written. The entry `default` is never used: it would
// send a password to any server (eca-features.md 3.2, 5.2).
package netrc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Entry is one machine of a file.
type Entry struct {
	Machine string
	Login   string
	Account string
	Port    string

	// File is the path of the file; Exposed means that users other than its owner may read it.
	File    string
	Exposed bool

	password *string // a pointer, so that formatters do not show it
}

// Password returns the secret.
func (e Entry) Password() string {
	if e.password == nil {
		return ""
	}
	return *e.password
}

// Key selects an entry.
type Key struct {
	Machine string
	Login   string // empty matches any login
	Port    string // empty matches entries without a port
}

// ParseKey parses `[login@]machine[:port]`, as in a provider's keyRc and in ${netrc:...}. A login
// may itself contain "@" (an e-mail address).
func ParseKey(text string) (Key, error) {
	rest := strings.TrimSpace(text)
	var k Key
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		k.Login, rest = rest[:i], rest[i+1:]
		if k.Login == "" {
			return Key{}, fmt.Errorf("netrc: %q has no login before the @", text)
		}
	}
	k.Machine, k.Port, _ = cutPort(rest)
	switch {
	case k.Machine == "":
		return Key{}, fmt.Errorf("netrc: %q has no machine; use the form [login@]machine[:port]", text)
	case strings.HasSuffix(rest, ":"):
		return Key{}, fmt.Errorf("netrc: %q has no port after the colon", text)
	case strings.ContainsFunc(k.Machine+k.Port, func(r rune) bool { return r <= ' ' || r == '"' }):
		return Key{}, fmt.Errorf("netrc: %q must have the form [login@]machine[:port]", text)
	}
	return k, nil
}

// cutPort splits machine:port; an IPv6 address with a port is in brackets.
func cutPort(s string) (machine, port string, found bool) {
	if inner, after, ok := strings.Cut(strings.TrimPrefix(s, "["), "]"); ok && strings.HasPrefix(s, "[") {
		port, found = strings.CutPrefix(after, ":")
		return inner, port, found
	}
	if strings.Count(s, ":") > 1 {
		return s, "", false
	}
	return strings.Cut(s, ":")
}

// DefaultPaths returns the files that are used if the configuration names none.
func DefaultPaths(home string) []string {
	if home == "" {
		return nil
	}
	return []string{filepath.Join(home, ".netrc"), filepath.Join(home, "_netrc")}
}

// Find returns the first entry that matches. An empty login matches any; port must equal the
// entry's, which may be empty. Missing files are skipped. An entry before a syntax error in its
// file is found; the syntax error is returned only if no entry is found.
func Find(paths []string, machine, login, port string) (Entry, bool, error) {
	var errs []error
	for _, path := range paths {
		data, exposed, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("netrc: %s cannot be read: %w", path, err))
			continue
		}
		e, ok, err := FindData(data, machine, login, port)
		if ok {
			e.File, e.Exposed = path, exposed
			return e, true, nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("netrc: %s: %w", path, err))
		}
	}
	return Entry{}, false, errors.Join(errs...)
}

// FindKey is Find with a key for ParseKey.
func FindKey(paths []string, key string) (Entry, bool, error) {
	k, err := ParseKey(key)
	if err != nil {
		return Entry{}, false, err
	}
	return Find(paths, k.Machine, k.Login, k.Port)
}

// FindData is Find in the content of one file.
func FindData(data []byte, machine, login, port string) (Entry, bool, error) {
	entries, err := Parse(data)
	for _, e := range entries {
		if strings.EqualFold(e.Machine, machine) && (login == "" || e.Login == login) && e.Port == port && e.password != nil {
			return e, true, nil
		}
	}
	return Entry{}, false, err
}

// maxSize is the largest file, in bytes.
const maxSize = 1 << 20

// read returns a file's content, and whether other users may read it.
func read(path string) (data []byte, exposed bool, err error) {
	f, err := safeio.Open("", path)
	if err != nil {
		return nil, false, safeio.Cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, safeio.Cause(err)
	}
	data, err = safeio.ReadOpen(f, maxSize)
	return data, runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0, safeio.Cause(err)
}
