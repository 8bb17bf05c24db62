package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxNamed limits how many other files a unit's hash covers.
const maxNamed = 64

// namedFiles lists the files of a folder that a configuration value runs or includes. Trust in a hook,
// for example, covers the current content of its script. namedFiles omits files that commands only
// process, because such files change often.
func namedFiles(root, dir string, in any) []string {
	n := fileCollector{root: root, dir: dir}
	n.addValue(in)
	slices.Sort(n.files)
	return n.files
}

// fileCollector collects the files that values name, if they are in the folder root. dir is the folder
// of the file that contains the values.
type fileCollector struct {
	root, dir string
	files     []string
}

func (n *fileCollector) addValue(v any) {
	switch v := v.(type) {
	case string:
		n.addText(v)
	case map[string]any:
		n.addObject(v)
	case []any:
		n.addList(v)
	}
}

// addList examines a list. In a list of words without a program, the first file is the script.
func (n *fileCollector) addList(list []any) {
	if words := texts(list); len(words) == len(list) {
		if i := slices.IndexFunc(words, n.addFile); i >= 0 {
			n.addExecutables(words[i+1:])
			return
		}
	}
	for _, e := range list {
		n.addValue(e)
	}
}

// addObject examines the values of an object. A program and its arguments belong together.
func (n *fileCollector) addObject(m map[string]any) {
	args, isList := m["args"].([]any)
	command, _ := m["command"].(string)
	path, _ := m["path"].(string)
	isList = isList && command+path != ""
	for _, key := range sortedKeys(m) {
		env, isObject := m[key].(map[string]any)
		program, isText := m[key].(string)
		switch {
		case key == "env" && isObject:
			n.addEnvironment(env)
		case isList && isText && (key == "command" || key == "path"):
			words := []string{program}
			if !n.addFile(program) {
				words = strings.Fields(program)
			}
			n.addCommand(append(words, texts(args)...))
			n.addIncluded(program)
			for _, arg := range texts(args) {
				n.addIncluded(arg)
			}
		case key == "args" && isList, key == "headers":
		default:
			n.addValue(m[key])
		}
	}
}

// addText examines a path or a command line.
func (n *fileCollector) addText(text string) {
	if n.addFile(text) {
		return
	}
	n.addIncluded(text)
	text = strings.NewReplacer("${cmd:", ";", `"$CLAUDE_PROJECT_DIR"/`, "", "$CLAUDE_PROJECT_DIR/", "", "${CLAUDE_PROJECT_DIR}/", "").Replace(text)
	n.addCommandLine(text)
}

// addIncluded adds the files whose content becomes part of the text: by ${file:...}, or as the output
// of ${cmd:cat ...}.
func (n *fileCollector) addIncluded(text string) {
	if !strings.Contains(text, "${") {
		return
	}
	parts, _ := parseDynamic(text)
	for _, p := range parts {
		if !p.expr || len(p.parts) != 1 || p.parts[0].expr {
			continue
		}
		words := strings.Fields(p.parts[0].text)
		switch {
		case p.text == "file":
			n.addFile(p.parts[0].text)
		case p.text == "cmd" && len(words) > 1 && words[0] == "cat":
			for _, word := range words[1:] {
				n.addFile(strings.Trim(word, `"'`))
			}
		}
	}
}

// addFile adds a file of the folder, and reports whether it exists.
func (n *fileCollector) addFile(path string) bool {
	at, ok := n.find(path)
	if ok {
		n.add(at)
	}
	return ok
}

func (n *fileCollector) add(at string) {
	if !slices.Contains(n.files, at) && len(n.files) < maxNamed {
		n.files = append(n.files, at)
	}
}

// find returns the path of a file in the folder.
func (n *fileCollector) find(path string) (string, bool) {
	if path == "" || len(path) > 4096 {
		return "", false
	}
	for _, base := range []string{n.root, n.dir} {
		at := path
		if !filepath.IsAbs(at) {
			at = filepath.Join(base, at)
		}
		at = filepath.Clean(at)
		if !safeio.Within(n.root, at) {
			continue
		}
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			return at, true
		}
	}
	return "", false
}

// maxProgram limits the size of hashed files, in bytes.
const maxProgram = 1 << 30

// fileSum returns a file's hash. For a link that leads out of the folder, it returns the target,
// because the content does not belong to the folder.
func fileSum(root, path string) (string, error) {
	f, err := safeio.Open(root, path)
	if errors.Is(err, safeio.ErrNotRegular) {
		return "", safeio.ErrNotRegular
	}
	if err != nil {
		target, _ := os.Readlink(path)
		return "a link to " + target, nil //nolint:nilerr // the folder cannot change the link's target
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxProgram+1)); err != nil || n > maxProgram {
		return "", cmp.Or(err, fmt.Errorf("%s has more than %d bytes", path, maxProgram))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
