package esrp

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scheme is the prefix of the URIs of files in a workspace.
const Scheme = "workspace://"

const (
	maxNamespace = 64
	maxURIPath   = 1024
)

// URI names a file of a workspace: a namespace and a path below it, decoded.
type URI struct{ Namespace, Path string }

// URIError is the error for an invalid workspace URI.
type URIError struct{ URI, Reason string }

func (e *URIError) Error() string {
	return fmt.Sprintf("invalid workspace URI %q: %s", e.URI, e.Reason)
}

// ParseURI parses a workspace URI by eca's rules (esrp.md 6, "ours"), which are stricter than the
// reference's: every accepted URI names a path below its namespace. Escapes are decoded once, before
// the rules are applied. The error is a *URIError.
func ParseURI(s string) (URI, error) {
	bad := func(reason string) (URI, error) { return URI{}, &URIError{s, reason} }
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok {
		return bad("it does not begin with " + Scheme)
	}
	namespace, escaped, ok := strings.Cut(rest, "/")
	if reason := checkNamespace(namespace); reason != "" {
		return bad(reason)
	}
	if !ok || escaped == "" {
		return bad("missing path")
	}
	for _, code := range []string{"%2f", "%5c", "%00"} {
		if strings.Contains(strings.ToLower(escaped), code) {
			return bad("the path has an escaped separator or zero byte")
		}
	}
	if strings.ContainsAny(escaped, "?#") {
		return bad("the path has a query or a fragment; escape ? and #")
	}
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		return bad("the path has an invalid escape")
	}
	if reason := checkPath(decoded); reason != "" {
		return bad(reason)
	}
	return URI{namespace, decoded}, nil
}

func checkNamespace(n string) string {
	switch {
	case n == "":
		return "there is no namespace"
	case len(n) > maxNamespace:
		return fmt.Sprintf("namespace too long: %d characters, at most %d", len(n), maxNamespace)
	case strings.Trim(n, ".") == "":
		return "a namespace must not be dots"
	}
	allowed := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if strings.TrimFunc(n, allowed) != "" {
		return "invalid namespace: letters, digits, dots, underscores and hyphens are allowed"
	}
	return ""
}

func checkPath(p string) string {
	switch {
	case len(p) > maxURIPath:
		return fmt.Sprintf("path too long: %d bytes, at most %d", len(p), maxURIPath)
	case !utf8.ValidString(p):
		return "the path is not UTF-8"
	case strings.Contains(p, ".."):
		return "path traversal (..) is not allowed"
	case strings.Contains(p, `\`):
		return "the path has a backslash"
	case strings.ContainsFunc(p, unicode.IsControl):
		return "the path has a control character"
	}
	for segment := range strings.SplitSeq(p, "/") {
		if segment == "" || segment == "." {
			return "the path must be relative, without empty segments and dots"
		}
	}
	return ""
}

// Reserved reports whether clients must not write to the URI's namespace (esrp.md 6).
func (u URI) Reserved() bool {
	return u.Namespace == "system" || u.Namespace == "tmp" || u.Namespace == "cache"
}

// Local returns the path of the file below a store's root, with slashes.
func (u URI) Local() string { return path.Join(u.Namespace, u.Path) }

// String returns the URI with the necessary escapes.
func (u URI) String() string {
	segments := strings.Split(u.Path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return Scheme + u.Namespace + "/" + strings.Join(segments, "/")
}

// checkRecordURI applies the reference's check of URIs in records (esrp.md 3). It returns the problem, or
// "".
func checkRecordURI(uri string) string {
	rest := strings.TrimPrefix(uri, Scheme)
	switch {
	case rest == "":
		return "nothing follows " + Scheme
	case strings.Contains(rest, ".."):
		return "path traversal (..) not allowed"
	case strings.HasPrefix(rest, "/"):
		return "there is no namespace"
	}
	return ""
}
