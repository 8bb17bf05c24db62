package cmdline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits of a word with braces: the words that they stand for, and its parts.
const (
	maxBraces      = 1000
	maxBracePieces = 100
)

// braces returns the words that a word with braces stands for, in bash's order.
func (p *printer) braces(pieces []piece) [][]piece {
	if !slices.ContainsFunc(pieces, func(x piece) bool { return x.kind == braceText }) {
		return [][]piece{pieces}
	}
	if len(pieces) > maxBracePieces {
		p.refuse("it has too many braces in a word")
		return nil
	}
	out := expandBraces(pieces)
	if slices.ContainsFunc(pieces, func(x piece) bool { return x.kind == bareText && isAmbiguousSequence(x.text) }) {
		p.refuse("it has a sequence in braces that eca does not print")
		return nil
	}
	if len(out) > maxBraces {
		p.refuse("its braces stand for too many words")
		return nil
	}
	for _, word := range out { // remaining braces are literal
		for i := range word {
			if word[i].kind == braceText {
				word[i].kind = quotedText
			}
		}
	}
	return out
}

func expandBraces(pieces []piece) [][]piece {
	for i, open := range pieces {
		if open.kind != braceText || open.text != "{" {
			continue
		}
		parts, end := alternatives(pieces[i+1:])
		if end < 0 {
			continue
		}
		var middle [][]piece
		if len(parts) > 1 {
			for _, part := range parts {
				middle = append(middle, expandBraces(part)...)
			}
		} else if middle = sequence(parts[0]); middle == nil {
			continue
		}
		var out [][]piece
		rests := expandBraces(pieces[i+1+end+1:])
		for _, m := range middle {
			for _, rest := range rests {
				if out = append(out, slices.Concat(pieces[:i], m, rest)); len(out) > maxBraces {
					return out
				}
			}
		}
		return out
	}
	return [][]piece{slices.Clone(pieces)}
}

// alternatives splits the text between braces at its commas. end is the index of the closing brace;
// -1 if it is missing.
func alternatives(pieces []piece) (parts [][]piece, end int) {
	depth, start := 0, 0
	for i, x := range pieces {
		if x.kind != braceText {
			continue
		}
		switch {
		case x.text == "{":
			depth++
		case x.text == "}" && depth > 0:
			depth--
		case x.text == "}":
			return append(parts, pieces[start:i]), i
		case depth == 0:
			parts = append(parts, pieces[start:i])
			start = i + 1
		}
	}
	return nil, -1
}

// isAmbiguousSequence reports whether a shell may read a text as a sequence of something other than
// plain numbers: of letters, or of numbers with signs or many digits.
func isAmbiguousSequence(s string) bool {
	first, rest, ok := strings.Cut(s, "..")
	last, _, _ := strings.Cut(rest, "..")
	letters := func(s string) bool { return len(s) == 1 && isName(s) && s != "_" }
	const most = 9 // digits
	return ok && (letters(first) && letters(last) || strings.ContainsAny(first[:min(1, len(first))]+last[:min(1, len(last))], "+") || len(s) > 3*most)
}

// sequence returns the numbers of a sequence such as {1..9}; nil for other texts.
func sequence(pieces []piece) [][]piece {
	if len(pieces) != 1 || pieces[0].kind != bareText {
		return nil
	}
	first, rest, ok := strings.Cut(pieces[0].text, "..")
	last, by, stepped := strings.Cut(rest, "..")
	from, errFrom := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	step := 1
	var errStep error
	if stepped {
		step, errStep = strconv.Atoi(by)
	}
	if !ok || errFrom != nil || errTo != nil || errStep != nil {
		return nil
	}
	const most = 1 << 30
	if from < -most || from > most || to < -most || to > most || step < -most || step > most {
		return nil
	}
	if step = max(step, -step); step == 0 {
		step = 1
	}
	if from > to {
		step = -step
	}
	width := 0
	if hasLeadingZero(first) || hasLeadingZero(last) {
		width = max(len(first), len(last))
	}
	var out [][]piece
	for n := from; (step > 0) == (n <= to) || n == to; n += step {
		if out = append(out, []piece{{quotedText, fmt.Sprintf("%0*d", width, n)}}); len(out) > maxBraces {
			break
		}
	}
	return out
}

// hasLeadingZero reports whether a number is written with leading zeros.
func hasLeadingZero(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}
