package cmdline

import (
	"slices"
	"strings"
)

// checkAwk refuses programs that may do more than print parts of their input.
func checkAwk(g parsedWords) (option, why string) {
	for i, w := range g.operands {
		switch {
		case g.globValue, i == 0 && w.glob:
			return "", "the program of awk may be the name of a file"
		case i > 0 && strings.Contains(w.text, "="):
			return "", w.text + " sets a variable of awk"
		}
	}
	if len(g.operands) > 0 && !awkPrints(g.operands[0].text) {
		return "", "eca does not know what the awk program does"
	}
	return "", ""
}

// awkPrints reports whether a program for awk only computes and prints. It has only known harmless
// statements and functions, and neither reads from nor writes to other files and programs.
//
// A slash is accepted only where it certainly begins a regular expression rather than divides.
func awkPrints(program string) bool {
	depth := 0             // of braces, where > opens a file
	previous := byte('\n') // the last character that is not a blank
	for program != "" {
		c, size := program[0], 1
		switch {
		case strings.IndexByte(" \t\n;,$()<=!~&+-*%?:[]", c) >= 0:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '"':
			size = awkText(program)
		case c == '/':
			size = strings.IndexByte(program[1:], '/') + 2
			if size < 2 || strings.IndexByte("{};\n(,!~&|", previous) < 0 || strings.ContainsAny(program[1:size], "\\[\n") {
				return false
			}
		case c == '>' && depth > 0:
			return false
		case c == '>':
		case c == '|' && strings.HasPrefix(program, "||"):
			size = 2
		default:
			rest := strings.TrimLeft(program, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.")
			size = len(program) - len(rest)
			if !awkWord(program[:size], strings.HasPrefix(strings.TrimLeft(rest, " \t"), "(")) {
				return false
			}
		}
		if size == 0 || depth < 0 {
			return false
		}
		if c != ' ' && c != '\t' {
			previous = program[size-1]
		}
		program = program[size:]
	}
	return depth == 0
}

// awkText returns the length of the string literal at the beginning of a program; 0 if it has an
// unknown escape or no end.
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

// awkWord reports whether a word is harmless: a number, a keyword or function that computes or prints,
// or a variable in small letters that has no special meaning in any awk. called is true if a
// parenthesis follows, so that the word may call a function.
func awkWord(word string, called bool) bool {
	switch {
	case word == "":
		return false
	case strings.Trim(word, "0123456789.") == "", slices.Contains([]string{"print", "printf", "if", "for", "while", "length", "substr", "index", "tolower", "toupper", "int", "split", "sprintf", "sub", "gsub", "match"}, word):
		return true
	case slices.Contains([]string{"NR", "NF", "FNR", "FILENAME", "FS", "OFS", "ORS", "BEGIN", "END", "else", "in", "do", "next", "exit", "break", "continue", "delete"}, word):
		return !called || word == "exit" || word == "in" || word == "else"
	}
	small := strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && word[0] >= 'a' && word[0] <= 'z'
	return small && !called && !slices.Contains(awkReserved(), word)
}

// awkReserved are words in small letters that have a meaning in some awk, in addition to those in
// awkWord.
func awkReserved() []string {
	return strings.Fields(`getline function func return switch case default nextfile namespace include load
		system close fflush srand rand sqrt exp log sin cos atan2 and or xor compl lshift rshift strtonum systime mktime strftime gensub
		asort asorti patsplit isarray typeof mkbool bindtextdomain dcgettext dcngettext extension adump stopme intdiv0`)
}
