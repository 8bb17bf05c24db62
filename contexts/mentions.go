package contexts

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of the mentions in a message; mentions beyond them remain plain text.
const (
	maxMentions    = 100  // words that may be mentions
	maxMention     = 4096 // bytes of a mention, the maximum length of a path
	maxPunctuation = 4    // trailing characters that may be punctuation
)

// mentions finds @/path, @~/path, @./path and @../path in a message, and @path below a root, each
// with an optional :L<first>-L<last> (eca-protocol.md 2.4). @"a path" may contain spaces. Mentions of
// nonexistent paths remain plain text, and so does #path, which clients use to name a file without
// including it.
func mentions(roots []string, message string) []Ref {
	var out []Ref
	for word := range mentionWords(message) {
		if ref, ok := mention(roots, word); ok {
			out = append(out, ref)
		}
	}
	return out
}

// mentionWords yields the text after each @ that may begin a mention, up to the next space, without
// quotation marks around the path and backslashes before its spaces.
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
			if unicode.IsLetter(last) || unicode.IsDigit(last) {
				continue
			}
			word, size := cutWord(rest)
			if !beginsPath(word) && !beginsName(word) {
				continue
			}
			message = rest[size:]
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

// cutWord returns the path at the beginning of a text, with what follows it up to a space, and how many
// bytes of the text it takes.
func cutWord(text string) (word string, size int) {
	toSpace := func(text string) int {
		if end := strings.IndexFunc(text, unicode.IsSpace); end >= 0 {
			return end
		}
		return len(text)
	}
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		path, rest, closed := strings.Cut(quoted[:min(len(quoted), maxMention)], `"`)
		if closed && !strings.Contains(path, "\n") {
			end := toSpace(rest)
			return path + rest[:end], len(`""`) + len(path) + end
		}
		return "", 0
	}
	size = toSpace(text)
	word = text[:size]
	for runtime.GOOS != "windows" && strings.HasSuffix(word, `\`) && strings.HasPrefix(text[size:], " ") && len(word) < maxMention {
		next := toSpace(text[size+1:])
		word = strings.TrimSuffix(word, `\`) + text[size:size+1+next]
		size += 1 + next
	}
	return word, size
}

func beginsPath(s string) bool {
	return slices.ContainsFunc([]string{"/", "~/", "./", "../"}, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// beginsName reports whether a path below a root may begin here.
func beginsName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.'
}

// findPath resolves a path in a message. A path without a prefix such as / or ./ is below a root. A
// name without a slash must be a file: as a folder, it is more likely the name of a person.
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
	whole := word
	for range maxPunctuation + 1 {
		name, first, last := cutRange(word)
		if path, dir, ok := findPath(roots, name); ok {
			ref := Ref{Type: "file", Path: path, FirstLine: first, LastLine: last}
			if dir {
				ref = Ref{Type: "directory", Path: path}
			}
			if dir && first > 0 {
				ref.mistake = name + " is a folder, which has no lines"
			}
			return ref, true
		}
		r, size := utf8.DecodeLastRuneInString(word)
		if !unicode.IsPunct(r) && !unicode.IsSymbol(r) || r == '/' {
			break
		}
		word = word[:len(word)-size]
	}
	return mistakenMention(roots, whole)
}

// mistakenMention returns a reference that reports a mistake, if a word is an existing path followed by
// something other than a range of lines.
func mistakenMention(roots []string, word string) (Ref, bool) {
	name := word
	for range maxPunctuation + 1 {
		i := strings.LastIndexAny(name, ":#")
		if i <= 0 {
			break
		}
		name = name[:i]
		if path, _, ok := findPath(roots, name); ok {
			mistake := fmt.Sprintf("%s does not select lines of %s; write :L3 or :L3-L9 after the path", shorten.Text(word[i:], 100), name)
			return Ref{Type: "file", Path: path, mistake: mistake}, true
		}
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
