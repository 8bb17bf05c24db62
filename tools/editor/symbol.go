package editor

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
)

// maxLine is the longest line in which a symbol is looked for, in bytes.
const maxLine = 1 << 20

// locate returns the position of a symbol on a line of a file: the whole word nearest to a column,
// which may be 0. Models are good at line numbers and bad at columns.
func locate(path string, line int, symbol string, character int) (tools.Position, error) {
	text, err := readLine(path, line)
	if err != nil {
		return tools.Position{}, err
	}
	at := tools.Position{Path: path, Line: line, Character: character}
	name := symbol
	if i := strings.LastIndexAny(symbol, ".:/#"); i >= 0 && i+1 < len(symbol) {
		name = symbol[i+1:] // for a qualified name, the position of its last part
	}
	if col := column(text, symbol, len(symbol)-len(name), character); col > 0 {
		at.Character = col
	} else if col := column(text, name, 0, character); col > 0 {
		at.Character = col
	} else if character < 1 {
		return tools.Position{}, fmt.Errorf("%q is not on line %d of %s, which reads: %s", symbol, line, path, shorten.Bytes(text, shownLine))
	}
	// The editor may have unsaved changes; then a given column is correct.
	return at, nil
}

// readLine returns a line of a text file, counting from 1.
func readLine(path string, line int) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	count := 0
	for lines.Scan() {
		if count++; count == line {
			return lines.Text(), nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("%s, line %d: %w", path, count+1, err)
	}
	return "", fmt.Errorf("%s has %d lines", path, count)
}

// column returns the column of an occurrence of word in text, in UTF-16 code units counted from 1;
// 0 if word does not occur. It prefers whole words, then the occurrence nearest to hint. offset is added
// to the occurrence's start within word.
func column(text, word string, offset, hint int) int {
	best, bestWhole := 0, false
	counted, units := 0, 0 // code units before the current position
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return best
		}
		start := from + i
		end := start + len(word)
		from = start + 1
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		whole := !inWord(before) && !inWord(after)
		units += utf16Len(text[counted : start+offset])
		counted = start + offset
		col := units + 1
		nearer := hint > 0 && distance(col, hint) < distance(best, hint)
		if best == 0 || whole && !bestWhole || whole == bestWhole && nearer {
			best, bestWhole = col, whole
		}
	}
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func distance(a, b int) int { return max(a-b, b-a) }

// utf16Len returns how many UTF-16 code units a text has.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// shownLine is how much of a line is shown to the model, in bytes.
const shownLine = 200
