package contexts

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of the mentions in a message; mentions beyond them remain plain text.
const (
	maxMentions    = 100  // words that may be mentions
	maxMention     = 4096 // bytes of a mention, the maximum length of a path
	maxPunctuation = 4    // trailing characters that may be punctuation
)

// mentions finds @/path, @~/path, @./path and @../path in a message, and @path below a root, each
// with an optional :L<first>-L<last> (eca-protocol 2.4). Mentions of nonexistent paths remain plain
// text, and so does #path, which clients use to name a file without including it.
func mentions(roots []string, message string) []Ref {
	var out []Ref
	for word := range mentionWords(message) {
		if ref, ok := mention(roots, word); ok {
			out = append(out, ref)
		}
	}
	return out
}

// mentionWords yields the text after each @ that may begin a mention, up to the next space.
func mentionWords(message string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := 0; n < maxMentions; {
			before, rest, found := strings.Cut(message, "@")
			if !found {
				return
			}
			message = rest
			// user@/x does not count as a mention.
			last, _ := utf8.DecodeLastRuneInString(before)
			if unicode.IsLetter(last) || unicode.IsDigit(last) || !beginsPath(rest) && !beginsName(rest) {
				continue
			}
			word := rest
			if end := strings.IndexFunc(rest, unicode.IsSpace); end >= 0 {
				word = rest[:end]
			}
			message = rest[len(word):]
			// "@/" and "@./.." do not request a whole folder.
			if len(word) > maxMention || strings.Trim(word, "~./") == "" {
				continue
			}
			n++
			if !yield(word) {
				return
			}
		}
	}
}

func beginsPath(s string) bool {
	return slices.ContainsFunc([]string{"/", "~/", "./", "../"}, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// beginsName reports whether a path below a root may begin here.
func beginsName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.'
}

// findPath resolves a path in a message. Without a prefix such as / or ./ the path is below a root,
// and a name without a slash must be a file, since people have names, too.
func findPath(roots []string, name string) (path string, dir, ok bool) {
	if beginsPath(name) {
		path = workspace.Abs(roots, name)
		info, err := os.Stat(path)
		return path, err == nil && info.IsDir(), err == nil
	}
	for _, root := range roots {
		path = filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Stat(path)
		if err == nil && (!info.IsDir() || strings.Contains(name, "/")) && workspace.New(root).Contains(path) {
			return path, info.IsDir(), true
		}
	}
	return "", false, false
}

// mention resolves a word; it first tries trailing punctuation as a part of the path.
func mention(roots []string, word string) (Ref, bool) {
	for range maxPunctuation + 1 {
		name, first, last := cutRange(word)
		if path, dir, ok := findPath(roots, name); ok {
			if dir {
				return Ref{Type: "directory", Path: path}, true
			}
			return Ref{Type: "file", Path: path, FirstLine: first, LastLine: last}, true
		}
		r, size := utf8.DecodeLastRuneInString(word)
		if !unicode.IsPunct(r) && !unicode.IsSymbol(r) || r == '/' {
			break
		}
		word = word[:len(word)-size]
	}
	return Ref{}, false
}

// cutRange cuts off :L<first> or :L<first>-L<last>; first is 0 if there is no range.
func cutRange(word string) (name string, first, last int) {
	i := strings.LastIndex(word, ":L")
	if i < 0 {
		return word, 0, 0
	}
	from, to, ok := strings.Cut(word[i+2:], "-L")
	if !ok {
		to = from
	}
	first, errFirst := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	if errFirst != nil || errLast != nil || first < 1 || last < first {
		return word, 0, 0
	}
	return word[:i], first, last
}
