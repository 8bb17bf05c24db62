package cmdline

import (
	"slices"
	"strings"
)

// checkAwk refuses programs that may do more than print parts of their input.
func checkAwk(g parsedWords) (option, why string) {
	for i, w := range g.operands {
		switch {
		case g.globbed, i == 0 && w.glob:
			return "", "the program of awk may be the name of a file"
		case i > 0 && strings.Contains(w.text, "="):
			return "", w.text + " sets a variable of awk"
		}
	}
	if len(g.operands) > 0 && !awkPrints(g.operands[0].text) {
		return "", "what the program of awk does is not known"
	}
	return "", ""
}

// awkPrints says whether a program of awk is made of words and signs that compute and print:
// there are no other commands and functions in it than some that do no more, no text goes to a
// file or a program, and none comes from one.
//
// A slash begins a regular expression where awk expects a value; elsewhere it is refused, so
// that it is never taken for the other thing that it can be.
func awkPrints(program string) bool {
	depth := 0           // of braces, where > opens a file
	before := byte('\n') // the last character that is not a blank
	for program != "" {
		c, size := program[0], 1
		switch {
		case strings.IndexByte(" \t\n;,$()<=!~&+-*%?:", c) >= 0:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '"':
			size = awkText(program)
		case c == '/':
			size = strings.IndexByte(program[1:], '/') + 2
			if size < 2 || strings.IndexByte("{};\n(,!~&|", before) < 0 || strings.ContainsAny(program[1:size], "\\[\n") {
				return false
			}
		case c == '>' && depth > 0:
			return false
		case c == '>':
		case c == '|' && strings.HasPrefix(program, "||"):
			size = 2
		default:
			size = len(program) - len(strings.TrimLeft(program, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."))
			if !awkWord(program[:size]) {
				return false
			}
		}
		if size == 0 || depth < 0 {
			return false
		}
		if c != ' ' && c != '\t' {
			before = program[size-1]
		}
		program = program[size:]
	}
	return depth == 0
}

// awkText is the length of the text that a program begins with; 0 if it has an escape in it
// that is not simple, or does not end.
func awkText(program string) int {
	for i := 1; i < len(program); i++ {
		switch program[i] {
		case '"':
			return i + 1
		case '\n':
			return 0
		case '\\':
			if i++; i == len(program) || strings.IndexByte(`nt"\`, program[i]) < 0 {
				return 0
			}
		}
	}
	return 0
}

// awkWord tells the words that compute and print, numbers and variables of one letter.
func awkWord(word string) bool {
	if word != "" && strings.Trim(word, "0123456789.") == "" || len(word) == 1 && word[0] >= 'a' && word[0] <= 'z' {
		return true
	}
	return slices.Contains([]string{"print", "printf", "NR", "NF", "FNR", "FILENAME", "BEGIN", "END", "length", "substr", "index", "tolower", "toupper", "int", "if", "else", "next", "exit", "sum", "count", "max", "min", "total"}, word)
}
