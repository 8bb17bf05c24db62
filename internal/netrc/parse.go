package netrc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Parse returns the entries of a file in order, without `default`. If there is a syntax error, the
// entries before it are returned with the error, which names the line.
func Parse(data []byte) ([]Entry, error) {
	s := scanner{remaining: bytes.TrimPrefix(data, []byte("\ufeff")), line: 1}
	var out []Entry
	var e *Entry // the current entry; nil before the first
	for {
		s.skipBlank(true)
		if len(s.remaining) == 0 {
			return out, nil
		}
		at := s.line
		word, err := s.word()
		if err != nil {
			return out, err
		}
		switch word {
		case "default":
			e = &Entry{} // its values are discarded
			continue
		case "macdef":
			if _, err := s.value(word); err != nil {
				return out, err
			}
			s.skipMacro()
			continue
		case "machine", "login", "user", "password", "passwd", "account", "port", "protocol":
		default:
			return out, fmt.Errorf("line %d: expected machine, login, password, account, port, default or macdef; put a value with spaces in double quotes", at)
		}
		value, err := s.value(word)
		if err != nil {
			return out, err
		}
		if word == "machine" {
			out = append(out, Entry{Machine: value})
			e = &out[len(out)-1]
			continue
		}
		if e == nil {
			return out, fmt.Errorf("line %d: %s comes before the first machine", at, word)
		}
		switch word {
		case "login", "user":
			e.Login = value
		case "password", "passwd":
			e.password = &value
		case "account":
			e.Account = value
		case "port":
			e.Port = value
		}
	}
}

// scanner splits a file into words.
type scanner struct {
	remaining []byte
	line      int
}

// value returns the word that must follow a keyword.
func (s *scanner) value(keyword string) (string, error) {
	at := s.line
	s.skipBlank(false)
	if len(s.remaining) == 0 {
		return "", fmt.Errorf("line %d: %s has no value", at, keyword)
	}
	return s.word()
}

// word reads the word at the current position.
func (s *scanner) word() (string, error) {
	if s.remaining[0] == '"' {
		return s.quotedWord()
	}
	end := bytes.IndexAny(s.remaining, " \t\r\n")
	if end < 0 {
		end = len(s.remaining)
	}
	word := string(s.remaining[:end])
	s.remaining = s.remaining[end:]
	if !utf8.ValidString(word) {
		return "", fmt.Errorf("line %d: invalid UTF-8", s.line)
	}
	return word, nil
}

// skipBlank skips white space and, if comments is set, comments: a "#" begins a comment only where a
// keyword is expected, since passwords may contain it.
func (s *scanner) skipBlank(comments bool) {
	for len(s.remaining) > 0 {
		switch c := s.remaining[0]; {
		case c == '\n':
			s.line++
		case c == ' ', c == '\t', c == '\r':
		case c == '#' && comments:
			end := bytes.IndexByte(s.remaining, '\n')
			if end < 0 {
				end = len(s.remaining)
			}
			s.remaining = s.remaining[end:]
			continue
		default:
			return
		}
		s.remaining = s.remaining[1:]
	}
}

// quotedWord reads a word in double quotes. A backslash escapes the next character; \n, \r and \t have
// their usual meaning.
func (s *scanner) quotedWord() (string, error) {
	startLine := s.line
	var out strings.Builder
	for i := 1; i < len(s.remaining); i++ {
		switch c := s.remaining[i]; c {
		case '"':
			s.remaining = s.remaining[i+1:]
			if !utf8.ValidString(out.String()) {
				return "", fmt.Errorf("line %d: invalid UTF-8", startLine)
			}
			return out.String(), nil
		case '\\':
			if i++; i == len(s.remaining) {
				continue
			}
			c = s.remaining[i]
			if c == '\n' {
				s.line++
			}
			if j := strings.IndexByte("nrt", c); j >= 0 {
				c = "\n\r\t"[j]
			}
			out.WriteByte(c)
		case '\n':
			s.line++
			out.WriteByte(c)
		default:
			out.WriteByte(c)
		}
	}
	s.remaining = nil
	return "", fmt.Errorf("line %d: unclosed double quote", startLine)
}

// skipMacro skips a macro: the rest of the line with its name, and the lines up to an empty one.
func (s *scanner) skipMacro() {
	for named := false; len(s.remaining) > 0; named = true {
		line, rest, _ := bytes.Cut(s.remaining, []byte("\n"))
		s.remaining = rest
		s.line++
		if named && len(bytes.TrimSpace(line)) == 0 {
			return
		}
	}
}
