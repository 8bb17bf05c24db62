package redact

import "strings"

// pattern is a kind of text that looks like a secret.
type pattern struct {
	literals    []string // in lower case; each text of this kind contains one of them
	match       matcher
	replacement string
}

// matcher returns the secret in s around a literal. The secret must not begin before from, because
// an earlier secret ends there. If there is no secret, matcher may return the end of a range in
// which no other literal can succeed.
type matcher func(s string, literal span, from int) (secret span, ok bool)

// span is a range of a text.
type span struct{ start, end int }

// allPatterns returns all kinds in the order in which they are removed.
func allPatterns() []pattern {
	const begin, end = "-----BEGIN ", "-----END "
	return []pattern{
		{[]string{"sk-"}, prefixed("sk-", wordOrDash, 16), Mark},                                                 // OpenAI, Anthropic and others
		{[]string{"gho_", "ghp_", "ghr_", "ghs_", "ghu_"}, prefixed("gh?_", alphanumeric, 20), Mark},             // GitHub
		{[]string{"github_pat_"}, prefixed("github_pat_", word, 20), Mark},                                       // GitHub
		{[]string{"glpat-"}, prefixed("glpat-", wordOrDash, 16), Mark},                                           // GitLab
		{[]string{"akia"}, awsKey, Mark},                                                                         // AWS
		{[]string{"aiza"}, prefixed("AIza", wordOrDash, 30), Mark},                                               // Google
		{[]string{"xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-"}, prefixed("xox?-", alphanumericOrDash, 10), Mark}, // Slack
		{[]string{"eyj"}, webToken, Mark},
		{[]string{"bearer"}, bearer, Mark},
		{[]string{strings.ToLower(begin)}, privateKey(begin, end), Mark},
		// JSON fields with telling names.
		{[]string{`"key"`, `apikey"`, `api-key"`, `api_key"`, `password"`, `token"`, `secret"`, `"authorization"`}, field, Mark + `"`},
		// URLs: the user information, and parameters.
		{[]string{"://"}, userinfo, Mark},
		{[]string{"key=", "token=", "secret=", "passwd=", "password=", "sig=", "signature="}, parameter, Mark},
	}
}

// prefixed matches a word that consists of a prefix and at least minLen characters of a set. In the
// prefix, ? stands for any character except capitals.
func prefixed(prefix string, set func(byte) bool, minLen int) matcher {
	return func(s string, literal span, from int) (span, bool) {
		if !wordStartsAt(s, literal.start, from) {
			return span{}, false
		}
		for i := range len(prefix) {
			if prefix[i] != '?' && prefix[i] != s[literal.start+i] || upper(s[literal.start+i]) && prefix[i] == '?' {
				return span{}, false
			}
		}
		end := endOf(s, literal.end, set)
		return secretIf(end-literal.end >= minLen, literal.start, end)
	}
}

// awsKey matches AKIA and 16 capitals and digits as a whole word.
func awsKey(s string, literal span, from int) (span, bool) {
	const length = 16
	end := literal.end + length
	ok := wordStartsAt(s, literal.start, from) && s[literal.start:literal.end] == "AKIA" &&
		endOf(s, literal.end, func(c byte) bool { return upper(c) || digit(c) }) >= end && (end == len(s) || !word(s[end]))
	return secretIf(ok, literal.start, end)
}

// webToken matches a JWT.
func webToken(s string, literal span, from int) (span, bool) {
	const minLen = 10
	if !wordStartsAt(s, literal.start, from) || s[literal.start:literal.end] != "eyJ" {
		return span{}, false
	}
	header := endOf(s, literal.end, wordOrDash)
	if header-literal.end < minLen || header == len(s) || s[header] != '.' {
		return span{end: header}, false // later candidates in the same run end at the same position
	}
	payload := endOf(s, header+1, wordOrDash)
	if payload-header-1 < minLen || payload == len(s) || s[payload] != '.' {
		return span{end: header}, false
	}
	return span{literal.start, endOf(s, payload+1, wordOrDash)}, true
}

// bearer matches the value of an Authorization header.
func bearer(s string, literal span, from int) (span, bool) {
	const minLen = 16
	if !wordStartsAt(s, literal.start, from) {
		return span{}, false
	}
	token := endOf(s, literal.end, space)
	end := endOf(s, token, func(c byte) bool { return wordOrDash(c) || strings.IndexByte(".~+/=", c) >= 0 })
	return secretIf(token > literal.end && end-token >= minLen, literal.start, end)
}

// privateKey matches a PEM key, given the beginnings of its first and last line.
func privateKey(begin, end string) matcher {
	return func(s string, literal span, from int) (span, bool) {
		if literal.start < from || s[literal.start:literal.end] != begin {
			return span{}, false
		}
		at, ok := keyLine(s, literal.end)
		for ok {
			next := strings.Index(s[at:], end)
			if next < 0 {
				return span{end: len(s)}, false // later keys have no end either
			}
			at += next + len(end)
			if end, whole := keyLine(s, at); whole {
				return span{literal.start, end}, true
			}
		}
		return span{}, false
	}
}

// keyLine returns the end of a BEGIN or END line of a private key. The name of the key begins at
// start.
func keyLine(s string, start int) (end int, ok bool) {
	const dashes = "-----"
	end = endOf(s, start, func(c byte) bool { return upper(c) || c == ' ' })
	return end + len(dashes), strings.HasSuffix(s[start:end], "PRIVATE KEY") && strings.HasPrefix(s[end:], dashes)
}

// field matches the value of a member of a JSON object; the literal is the end of the member's
// name.
func field(s string, literal span, from int) (span, bool) {
	name := literal.start
	if s[name] != '"' {
		name = startOf(s, name, from, func(c byte) bool { return letter(c) || c == '_' || c == '-' }) - 1
	}
	if name < from || s[name] != '"' {
		return span{}, false
	}
	colon := endOf(s, literal.end, space)
	if colon == len(s) || s[colon] != ':' {
		return span{}, false
	}
	quote := endOf(s, colon+1, space)
	if quote == len(s) || s[quote] != '"' {
		return span{}, false
	}
	for i := quote + 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return span{quote + 1, i + 1}, true
		case '\\':
			if i++; i < len(s) && s[i] == '\n' {
				return span{}, false
			}
		}
	}
	return span{}, false
}

// userinfo matches the user and password in a URL.
func userinfo(s string, literal span, from int) (span, bool) {
	scheme := startOf(s, literal.start, from, func(c byte) bool { return alphanumeric(c) || strings.IndexByte("+.-", c) >= 0 })
	if !strings.ContainsFunc(s[scheme:literal.start], func(c rune) bool { return letter(byte(c)) }) { //nolint:gosec // all of ASCII
		return span{}, false
	}
	end := endOf(s, literal.end, func(c byte) bool { return !space(c) && strings.IndexByte(`/?#@"'<>`, c) < 0 })
	return secretIf(end > literal.end && end < len(s) && s[end] == '@', literal.end, end)
}

// parameter matches the value of a URL parameter; the literal is the end of the parameter's name.
func parameter(s string, literal span, from int) (span, bool) {
	mark := startOf(s, literal.start, from, wordOrDash) - 1
	if mark < from || s[mark] != '?' && s[mark] != '&' {
		return span{}, false
	}
	end := endOf(s, literal.end, func(c byte) bool { return !space(c) && strings.IndexByte(`&#"'<>`, c) < 0 })
	return secretIf(end > literal.end, literal.end, end)
}

// secretIf returns the range and true if ok is true.
func secretIf(ok bool, start, end int) (span, bool) {
	if !ok {
		return span{}, false
	}
	return span{start, end}, true
}

// wordStartsAt reports whether a word begins at start, and start is not before from.
func wordStartsAt(s string, start, from int) bool {
	return start >= from && (start == 0 || !word(s[start-1]))
}

// endOf returns the end of the sequence of characters in a set that begins at start; start if it is empty.
func endOf(s string, start int, set func(byte) bool) int {
	for start < len(s) && set(s[start]) {
		start++
	}
	return start
}

// startOf returns the start of the sequence of characters in a set that ends at end, but at least
// from.
func startOf(s string, end, from int, set func(byte) bool) int {
	for end > from && set(s[end-1]) {
		end--
	}
	return end
}

func upper(c byte) bool              { return 'A' <= c && c <= 'Z' }
func digit(c byte) bool              { return '0' <= c && c <= '9' }
func letter(c byte) bool             { return upper(c) || 'a' <= c && c <= 'z' }
func alphanumeric(c byte) bool       { return letter(c) || digit(c) }
func alphanumericOrDash(c byte) bool { return alphanumeric(c) || c == '-' }
func word(c byte) bool               { return alphanumeric(c) || c == '_' }
func wordOrDash(c byte) bool         { return word(c) || c == '-' }
func space(c byte) bool              { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }
