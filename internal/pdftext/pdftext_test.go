package pdftext

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// file makes a PDF of one page for each text.
func file(texts ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(body string) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(offsets), body)
	}
	b.WriteString("%PDF-1.4\n")
	var kids []string
	for i := range texts {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(texts)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, text := range texts {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		stream := fmt.Sprintf("BT /F1 12 Tf 10 100 Td (%s) Tj ET", text)
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func TestText(t *testing.T) {
	got, err := Text(t.Context(), file("Hello world", "Second page"))
	if want := "--- page 1 of 2 ---\nHello world\n--- page 2 of 2 ---\nSecond page\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for name, data := range map[string][]byte{
		"no text": file(""), "cut": file("Hello")[:200], "nothing": []byte("%PDF-1.4\n"), "no PDF": []byte("hello"),
		"circles": bytes.ReplaceAll(file("Hello"), []byte("/Kids [4 0 R]"), []byte("/Kids [2 0 R 2 0 R]")),
		"circle":  bytes.ReplaceAll(file("Hello"), []byte("/Kids [4 0 R]"), []byte("/Kids [2 0 R]")),
	} {
		if got, err := Text(t.Context(), data); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	// A flat tree of many pages is what some programs write.
	texts := make([]string, 700)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("page %d. ", i+1), 100)
	}
	got, err = Text(t.Context(), file(texts...))
	if err != nil || strings.Count(got, "--- page ") != len(texts) || !strings.Contains(got, "page 700. page 700.") {
		t.Errorf("%d pages, %v", strings.Count(got, "--- page "), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Text(ctx, file("Hello")); err == nil {
		t.Error("Text returned no error although its context was cancelled")
	}
}

// Text returns a bounded part of a file with too much text or too many pages, and says that the
// rest is left out.
func TestLongFiles(t *testing.T) {
	got, err := Text(t.Context(), file(strings.Repeat("many words ", maxText/10), "the last page"))
	if err != nil || len(got) > maxText+100 || !strings.HasSuffix(got, "[the rest of the PDF is left out]\n") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	one := file("Hello")
	many := bytes.Replace(one, []byte("/Kids [4 0 R]"), []byte("/Kids ["+strings.Repeat("4 0 R ", maxPages+1)+"]"), 1)
	many = bytes.Replace(many, []byte("/Count 1"), []byte(fmt.Sprintf("/Count %d", maxPages+1)), 1)
	moved := len(many) - len(one)
	for _, o := range []string{"3 0 obj", "4 0 obj", "5 0 obj", "xref"} {
		at := bytes.Index(one, []byte("\n"+o+"\n")) + 1
		many = bytes.Replace(many, fmt.Appendf(nil, "%010d", at), fmt.Appendf(nil, "%010d", at+moved), 1)
		many = bytes.Replace(many, fmt.Appendf(nil, "startxref\n%d", at), fmt.Appendf(nil, "startxref\n%d", at+moved), 1)
	}
	got, err = Text(t.Context(), many)
	if err != nil || strings.Count(got, "Hello") != maxPages || !strings.HasSuffix(got, "[1 pages are left out]\n") {
		t.Errorf("%d pages, %v, %q", strings.Count(got, "Hello"), err, got[max(0, len(got)-100):])
	}
}

// Text counts the bytes that it reads. It refuses a file whose structure makes it read the same parts
// again and again.
func TestReadsAreCounted(t *testing.T) {
	b := &boundedReader{ctx: t.Context(), data: make([]byte, 10), remaining: 15}
	for range 2 {
		if n, err := b.ReadAt(make([]byte, 10), 0); n != 10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := b.ReadAt(make([]byte, 10), 0); n != 0 || err == nil || !strings.Contains(err.Error(), "read too often") {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := b.ReadAt(make([]byte, 1), 5); err == nil {
		t.Error("ReadAt still returns bytes after the limit")
	}
}

// Endless nesting would crash the program. Our version of the module has a limit; this test fails with
// a version that has none.
func TestDeep(t *testing.T) {
	needs.Long(t)
	deep := strings.Repeat("[", 8<<20)
	plain := file(deep)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write([]byte(deep)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	raw := bytes.ReplaceAll(file("X"), []byte("BT /F1 12 Tf 10 100 Td (X) Tj ET"), z.Bytes())
	packed := bytes.ReplaceAll(raw, []byte("<< /Length 32 >>"), []byte(fmt.Sprintf("<< /Length %d /Filter /FlateDecode >>", z.Len())))
	bare := bytes.ReplaceAll(plain, []byte("(["), []byte("[["))
	for name, data := range map[string][]byte{"plain": bare, "packed": packed} {
		if got, err := Text(t.Context(), data); err == nil && !strings.Contains(got, "cannot be read") {
			t.Errorf("%s: %.100q", name, got)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(file("Hello", "two"))
	f.Add(bytes.ReplaceAll(file("Hello"), []byte("/Kids [4 0 R]"), []byte("/Kids [2 0 R]")))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Text(t.Context(), data) // must end, without a panic
	})
}
