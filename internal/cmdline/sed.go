package cmdline

import (
	"strings"
)

// checkSed refuses scripts that may do more than print what is in the files.
func checkSed(g parsedWords) (option, why string) {
	scripts := []string{}
	for _, o := range g.options {
		if o.name == "-e" {
			scripts = append(scripts, o.value)
		}
	}
	switch {
	case g.optionAfterOperand: // some systems take them for files, and the first operand for the script
		return "", "options of sed after its files are not options everywhere"
	case g.globValue, len(scripts) == 0 && len(g.operands) > 0 && g.operands[0].glob:
		return "", "the script of sed may be the name of a file"
	case len(scripts) == 0 && len(g.operands) > 0:
		scripts = append(scripts, g.operands[0].text)
	}
	for _, s := range scripts {
		if p := (sedScript{rest: s}); !p.onlyPrints() {
			return "", "eca does not know what the sed script does"
		}
	}
	return "", ""
}

// sedScript parses the part of the language that all versions of sed read alike.
type sedScript struct {
	rest  string // not parsed yet
	depth int    // open braces
}

// onlyPrints reports whether all commands of the script only edit and print lines. None of them may read
// or write a file, or run a program.
func (s *sedScript) onlyPrints() bool {
	for {
		s.rest = strings.TrimLeft(s.rest, " \t\n;")
		if s.rest == "" {
			return s.depth == 0
		}
		if !s.address() || !s.command() {
			return false
		}
	}
}

// next consumes the next character if it is one of some characters.
func (s *sedScript) next(characters string) bool {
	if s.rest == "" || !strings.Contains(characters, s.rest[:1]) {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// number consumes digits.
func (s *sedScript) number() bool {
	rest := strings.TrimLeft(s.rest, "0123456789")
	found := rest != s.rest
	s.rest = rest
	return found
}

func (s *sedScript) blanks() { s.rest = strings.TrimLeft(s.rest, " \t") }

// address consumes the addresses of a command.
func (s *sedScript) address() bool {
	found, ok := s.lines()
	if !ok {
		return false
	}
	if s.blanks(); found && s.next(",") {
		s.blanks()
		if s.next("+~") {
			found = s.number()
		} else {
			found, ok = s.lines()
		}
		if !found || !ok {
			return false
		}
	}
	s.blanks()
	for s.next("!") {
		s.blanks()
	}
	return true
}

// lines consumes one address; ok is false if it is not understood.
func (s *sedScript) lines() (found, ok bool) {
	switch {
	case s.number():
		if s.next("~") {
			return true, s.number()
		}
	case s.next("$"):
	case s.next("/"):
		if !s.pattern('/') {
			return true, false
		}
		for s.next("IM") {
		}
	case strings.HasPrefix(s.rest, `\`):
		return true, false // another delimiter
	default:
		return false, true
	}
	return true, true
}

// pattern consumes a regular expression and its delimiter. It refuses a delimiter in brackets, which
// ends the expression in some versions only.
func (s *sedScript) pattern(delimiter byte) bool {
	end, inBrackets := -1, false
	for i := 0; i < len(s.rest) && end < 0; i++ {
		switch c := s.rest[i]; {
		case c == '\n':
			return false
		case c == '\\' && inBrackets, c == delimiter && inBrackets:
			return false
		case c == '\\':
			i++
			if i < len(s.rest) && (s.rest[i] == '\n' || s.rest[i] == 'c') { // \c includes the next character
				return false
			}
		case c == '[' && inBrackets && i+1 < len(s.rest) && strings.Contains(":.=", s.rest[i+1:i+2]):
			// A class such as [:alpha:] within the brackets.
			class := strings.Index(s.rest[i+2:], s.rest[i+1:i+2]+"]")
			if class < 0 || strings.ContainsAny(s.rest[i:i+2+class], string(delimiter)+"\\\n") {
				return false
			}
			i += class + 3
		case c == '[' && !inBrackets:
			inBrackets = true
			for _, first := range []string{"^", "]"} { // do not end it as the first characters
				if strings.HasPrefix(s.rest[i+1:], first) {
					i++
				}
			}
		case c == ']':
			inBrackets = false
		case c == delimiter:
			end = i
		}
	}
	if end < 0 {
		return false
	}
	s.rest = s.rest[end+1:]
	return true
}

// replacement consumes the replacement of s and its delimiter.
func (s *sedScript) replacement(delimiter byte) bool {
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\n':
			return false
		case '\\':
			i++
			if i < len(s.rest) && (s.rest[i] == '\n' || s.rest[i] == 'c') {
				return false
			}
		case delimiter:
			s.rest = s.rest[i+1:]
			return true
		}
	}
	return false
}

// command consumes one command, if it is known to be harmless.
func (s *sedScript) command() bool {
	switch {
	case s.next("{"):
		s.depth++
		return true
	case s.next("}"):
		s.depth--
		return s.depth >= 0 && s.atEnd()
	case s.next("pPdD=nNgGhHx"):
		return s.atEnd()
	case s.next("qQ"):
		s.blanks()
		s.number()
		return s.atEnd()
	case s.next("s"):
		delimiter, ok := s.delimiter()
		if !ok || !s.pattern(delimiter) || !s.replacement(delimiter) {
			return false
		}
		for s.next("gpiI0123456789") {
		}
		return s.atEnd()
	case s.next("y"):
		delimiter, ok := s.delimiter()
		return ok && s.replacement(delimiter) && s.replacement(delimiter) && s.atEnd()
	case s.next(":"): // a label
		return s.label() && s.atEnd()
	case s.next("bt"):
		s.blanks()
		s.label()
		return s.atEnd()
	}
	return false
}

// delimiter consumes the character that separates the parts of a command.
func (s *sedScript) delimiter() (byte, bool) {
	const usual = "/|,#:!@%_;~+"
	if s.rest == "" || !strings.Contains(usual, s.rest[:1]) {
		return 0, false
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c, true
}

// label consumes the name of a label.
func (s *sedScript) label() bool {
	rest := strings.TrimLeft(s.rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	found := rest != s.rest
	s.rest = rest
	return found
}

// atEnd reports whether a command ends here.
func (s *sedScript) atEnd() bool {
	s.blanks()
	return s.rest == "" || strings.Contains(";\n}", s.rest[:1])
}
