package lang

import (
	"bytes"
	"testing"
)

// pieces are code that opens something without closing it, closes something without opening it, or
// looks like the beginning of a definition, in some language.
var pieces = []string{
	"(", "{", "[", "<", ")", "}", "]", ">", "\"", "'", "`", "\\", "/", "#", "$", "@", "$@", "-", "=", "\x01", "\n", "[[[[", "[==[", "--[[", "/*", "{-", "(*",
	"{|", "{|]", "<<A", "<<A\n", "<<<A ", "<?", "?>", "%q(", "~s(", "r#\"", "\"\"\"", "\"${", "\"#{", "${", "$(", "$a$", "=/[", "a = <", "a<", "f(", "f(\n", "x = {",
	"class A {", "class A ", "object A ", "enum A {", "namespace a.", "template<", "operator", "def f", "def f\n", "function a.", "let ", "where ", "type (", "case ",
	"type a =", "a :: ", "a => ", "#if a\n{\n#else\n", "#define a(", "(def ", "create table a (", "export ", "import a.", "func (", "fn a<", "if {", "begin ", "end\n",
}

// repeatCode repeats a piece of code until it has at least size bytes.
func repeatCode(piece string, size int) []byte {
	return bytes.Repeat([]byte(piece), size/len(piece)+1)
}

// workOf returns a measure of the work of a scan: the bytes that it reads, its tokens, the steps of
// its outline, and the bytes of searches without a result.
func workOf(s *Scanner, l *Language, src []byte) int {
	s.Scan(l, src)
	return len(src) + len(s.lex.tokens) + s.lex.wastedScans + s.out.steps
}

// For each repeated piece, eight times as many bytes take at most about eight times the work, twice
// that at worst.
func TestWorkIsLinear(t *testing.T) {
	small, times, pieces := 2<<10, 8, pieces
	if *everyFile { // of ten megabytes
		const atoms = 28
		small, times, pieces = 5<<18, 8, pieces[:atoms]
	}
	var s Scanner
	for _, l := range New().All() {
		for _, piece := range pieces {
			little, much := workOf(&s, l, repeatCode(piece, small)), workOf(&s, l, repeatCode(piece, times*small))
			// The limit of wastedScans reads has a fixed part.
			if most := 2*times*little + 1<<17; much > most {
				t.Errorf("%s, %q: %d for %d bytes, %d for %d times as many", l.Name, piece, little, small, much, times)
			}
			if perByte := much / (times * small); perByte > 40 {
				t.Errorf("%s, %q: %d for each byte", l.Name, piece, perByte)
			}
		}
	}
}
