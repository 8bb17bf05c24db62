package oauth

import "strings"

// Challenge is the content of a WWW-Authenticate header with which a server requests a bearer
// token, or a different one (RFC 6750 section 3, RFC 9728 section 5.1). All fields may be empty.
type Challenge struct {
	Error    string   // invalid_token, insufficient_scope, ...
	Scopes   []string // scopes that the token must have
	Metadata string   // URL of the resource's metadata
}

// maxChallenge limits how much of a header is read, in bytes.
const maxChallenge = 16 << 10

// ParseChallenge reads the headers of one answer. It ignores other schemes and invalid challenges,
// and returns the first challenge for a bearer token.
func ParseChallenge(headers []string) Challenge {
	for _, header := range headers {
		for scheme, params := range challenges(header[:min(len(header), maxChallenge)]) {
			if strings.EqualFold(scheme, "Bearer") {
				return Challenge{
					Error: oneLine(params["error"], 100), Scopes: strings.Fields(params["scope"]), Metadata: params["resource_metadata"],
				}
			}
		}
	}
	return Challenge{}
}

// challenges iterates over the challenges of a header: the scheme, and the parameters by name in
// lower case (RFC 9110 section 11.6.1).
func challenges(header string) func(yield func(string, map[string]string) bool) {
	return func(yield func(string, map[string]string) bool) {
		scheme, params := "", map[string]string{}
		rest := header
		for {
			rest = strings.TrimLeft(rest, " \t,")
			word := token(rest)
			if word == "" {
				break
			}
			after := strings.TrimLeft(rest[len(word):], " \t")
			if value, ok := strings.CutPrefix(after, "="); ok && scheme != "" && !strings.HasPrefix(value, "=") {
				var text string
				text, rest = parameter(strings.TrimLeft(value, " \t"))
				if name := strings.ToLower(word); params[name] == "" {
					params[name] = text
				}
				continue
			}
			if scheme != "" && !yield(scheme, params) {
				return
			}
			scheme, params = word, map[string]string{}
			if rest = after; strings.HasPrefix(rest, "=") {
				rest = strings.TrimLeft(rest, "=") // the end of a token68
			}
		}
		if scheme != "" {
			yield(scheme, params)
		}
	}
}

// token returns the longest prefix of a text that is an HTTP token.
func token(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// parameter reads a parameter's value, quoted or not, and returns the rest of the text.
func parameter(text string) (value, rest string) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ", \t")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:]
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return out.String(), text[i+1:]
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), ""
}
