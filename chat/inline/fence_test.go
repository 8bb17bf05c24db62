package inline

import (
	"regexp"
	"strings"
	"testing"
)

// strip is what the stripper does, of a whole answer.
func strip(s string, keepFence bool) string {
	opening := regexp.MustCompile("^[ \t\r\n]*(`{3,})[^`\n]*(\n|$)").FindStringSubmatch(s)
	if opening == nil || keepFence {
		return strings.TrimRight(s, "\r\n")
	}
	s = s[len(opening[0]):]
	closing := regexp.MustCompile("(^|[\r\n]+)[ \t]*" + opening[1] + "`*[ \t\r\n]*$")
	if at := closing.FindStringIndex(s); at != nil {
		return s[:at[0]]
	}
	return strings.TrimRight(s, "\r\n")
}

// stream strips an answer that comes in pieces, cut where cuts has a bit set.
func stream(s string, keepFence bool, cuts uint64) string {
	st := stripper{keepFence: keepFence}
	var out strings.Builder
	from := 0
	for i := range len(s) {
		if cuts>>(i%64)&1 == 1 {
			out.WriteString(st.write(s[from:i]))
			from = i
		}
	}
	out.WriteString(st.write(s[from:]))
	out.WriteString(st.end())
	return out.String()
}

func TestStripper(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"x := 1":                         "x := 1",
		"\n  x\n  y\n\n":                 "\n  x\n  y",
		"```go\nx\n```":                  "x",
		"\n ```\r\n  x\r\n\r\n ``` \r\n": "  x",
		"```go\nx\n":                     "x",
		"```\n```":                       "",
		"```":                            "",
		"``":                             "``",
		"```x```":                        "```x```",
		"`x` and ```\ny\n```":            "`x` and ```\ny\n```",
		"````md\n```go\nx\n```\n````\n":  "```go\nx\n```",
		"```md\n```go\nx\n```\n```":      "```go\nx\n```",
		"```go\nx\n```\nI did it.":       "x\n```\nI did it.",
		"```\nx\n``` \n\n  ```\n":        "x\n``` ",
		"```\nx\n``\n":                   "x\n``",
		"Here:\n```\nx\n```":             "Here:\n```\nx\n```",
		"```\n\n\tx\n  \n```":            "\n\tx\n  ",
		"```日本\n語\n```":                  "語",
	} {
		for name, got := range map[string]string{"oracle": strip(in, false), "whole": stream(in, false, 0), "bytes": stream(in, false, ^uint64(0))} {
			if got != want {
				t.Errorf("%s of %q: %q, want %q", name, in, got, want)
			}
		}
	}
	if got := stream("```go\nx\n```\n", true, ^uint64(0)); got != "```go\nx\n```" {
		t.Errorf("a fence of its own: %q", got)
	}
}

// Text is shown at once; only possible parts of the frame wait.
func TestStripperDoesNotWait(t *testing.T) {
	var s stripper
	for _, c := range []struct{ in, out string }{
		{"``", ""}, {"`go", ""}, {"\nfunc", "func"}, {" f() {", " f() {"}, {"\n", ""}, {"\t``", ""}, {"x", "\n\t``x"}, {"\n}", "\n}"}, {"\n```", ""}, {"\n", ""},
	} {
		if got := s.write(c.in); got != c.out {
			t.Errorf("%q: %q, want %q", c.in, got, c.out)
		}
	}
	if rest := s.end(); rest != "" {
		t.Errorf("rest %q", rest)
	}
}

func FuzzStripper(f *testing.F) {
	f.Add("```go\nx\n```\n", false, uint64(0x55))
	f.Add("\n````\n```\na\n``` \n\n ````", false, ^uint64(0))
	f.Add("a\r\n ``\n```", true, uint64(3))
	f.Fuzz(func(t *testing.T, s string, keepFence bool, cuts uint64) {
		if got, want := stream(s, keepFence, cuts), strip(s, keepFence); got != want {
			t.Errorf("%q cut at %b: %q, want %q", s, cuts, got, want)
		}
	})
}
