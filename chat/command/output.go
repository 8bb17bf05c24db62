package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of the shown output, in bytes of JSON. One client drops messages above 60 KB
// (eca-features.md, Recorded behaviour).
const (
	maxShown = 48 << 10
	headSize = 24 << 10
)

// fitMessage returns the text to show. A text that is too long is written to a file; fitMessage then
// returns its beginning and the path of the file.
func (c *Commands) fitMessage(name, text string) string {
	if jsonSize(text) <= maxShown {
		return "\n" + text + "\n"
	}
	where := "The whole text could not be written to a file"
	path, err := c.write("", "eca-"+name, ".md", func(f *os.File) error {
		_, err := f.WriteString(text + "\n")
		return err
	})
	if err == nil {
		where = "The whole text is in `" + path + "`"
	} else {
		where += ": " + err.Error()
	}
	head := text[:min(len(text), headSize)]
	for jsonSize(head) > headSize {
		head = head[:len(head)*3/4]
	}
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		head = head[:i]
	}
	for !utf8.ValidString(head) && len(head) > 0 {
		head = head[:len(head)-1]
	}
	return "\n" + head + closeFence(head) + "\n\n" + where + "; this is its beginning.\n"
}

// jsonSize returns the size of a text in JSON, in bytes.
func jsonSize(s string) int {
	raw, _ := json.Marshal(s)
	return len(raw)
}

// closeFence returns the end of the code block in which a text was cut, or "".
func closeFence(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case open == "" && len(ticks) >= 3:
			open = ticks
		case open != "" && line == ticks && len(ticks) >= len(open):
			open = ""
		}
	}
	if open == "" {
		return ""
	}
	return "\n" + open
}

// fence formats a text as a code block, even if it contains code fences.
func fence(language, text string) string {
	ticks := "```"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + ticks + "\n"
}

// write creates a file, calls fill to write it, and returns its path. arg is the user's argument: the
// path of a new file, or an existing folder, or empty for the folder of temporary files. If arg is a
// folder or empty, the name of the file is base+ext, with a number if that is taken. Existing files
// are not overwritten. If fill fails, the file is removed.
func (c *Commands) write(arg, base, ext string, fill func(*os.File) error) (string, error) {
	f, err := c.create(arg, base, ext)
	if err != nil {
		return "", err
	}
	err = fill(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s could not be written: %w", f.Name(), err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func (c *Commands) create(arg, base, ext string) (*os.File, error) {
	open := func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	dir := c.deps.TempDir
	if arg != "" {
		path := workspace.Abs(c.deps.Roots(), arg)
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			f, err := open(path)
			if errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf("%s exists already; name another file", path)
			}
			return f, err
		}
		dir = path
	}
	const maxTries = 10_000
	for n := 1; ; n++ {
		name := base + ext
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", base, n, ext)
		}
		f, err := open(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrExist) || n == maxTries {
			return f, err
		}
	}
}

// slug converts a title to a part of a file name.
func slug(title string) string {
	const maxSlug = 40
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case b.Len() >= maxSlug:
		case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}
