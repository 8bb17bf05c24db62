package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/regular"
)

// maxNamed bounds the files that a unit's sum stands for beside its own.
const maxNamed = 64

// namedFiles lists the files of a folder that values name as what is run or read: whoever
// trusts a hook trusts its script as it is. Files that commands only work on are none of
// them: they change.
func namedFiles(root, dir string, in any) []string {
	n := named{root: root, dir: dir}
	n.value(in)
	slices.Sort(n.files)
	return n.files
}

type named struct {
	root, dir string
	files     []string
}

func (n *named) value(v any) {
	switch v := v.(type) {
	case string:
		n.text(v)
	case map[string]any:
		for _, key := range sortedKeys(v) {
			n.value(v[key])
		}
	case []any:
		// Of arguments the first file is the script, others are what it works on.
		words := true
		for _, e := range v {
			_, isText := e.(string)
			words = words && isText
		}
		for _, e := range v {
			if text, _ := e.(string); words && n.file(text) {
				return
			}
		}
		for _, e := range v {
			n.value(e)
		}
	}
}

// text looks at a path, or at what a command line runs.
func (n *named) text(text string) {
	if n.file(text) {
		return
	}
	text = strings.NewReplacer("${cmd:", ";", `"$CLAUDE_PROJECT_DIR"/`, "", "$CLAUDE_PROJECT_DIR/", "", "${CLAUDE_PROJECT_DIR}/", "").Replace(text)
	for _, command := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";|&()`{}\n", r) }) {
		for _, word := range strings.Fields(command) {
			word = strings.Trim(word, `"'$`)
			if strings.HasPrefix(word, "-") || strings.Contains(word, "=") || interpreter(filepath.Base(word)) {
				continue // the next one may be what is run
			}
			n.file(word)
			break
		}
	}
}

// interpreter says whether a program runs what its first argument names.
func interpreter(name string) bool {
	name = strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.")
	return slices.Contains(strings.Fields("sh bash zsh dash ksh fish env exec source command nohup time nice sudo python node deno bun run ruby perl php lua go tsx npx uv pwsh powershell cat"), name) || name == ""
}

// file adds a file of the folder, and says whether there is one.
func (n *named) file(path string) bool {
	if path == "" || len(path) > 4096 || len(n.files) == maxNamed {
		return false
	}
	for _, base := range []string{n.root, n.dir} {
		at := path
		if !filepath.IsAbs(at) {
			at = filepath.Join(base, at)
		}
		at = filepath.Clean(at)
		rel, err := filepath.Rel(n.root, at)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !slices.Contains(n.files, at) {
			n.files = append(n.files, at)
		}
		return true
	}
	return false
}

// maxProgram bounds the files that sums are made of, in bytes.
const maxProgram = 1 << 30

// fileSum returns a file's hash. A link that leads out of the folder is a file of the
// user's, whose content is not the folder's.
func fileSum(root, path string) (string, error) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return "", err
	}
	f, err := regular.OpenIn(root, rel)
	if err != nil {
		target, _ := os.Readlink(path)
		return "a link to " + target, nil //nolint:nilerr // what it leads to can not be changed by the folder
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = regular.ErrNot
	}
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxProgram+1)); err != nil || n > maxProgram {
		return "", cmp.Or(err, fmt.Errorf("%s has more than %d bytes", path, maxProgram))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
