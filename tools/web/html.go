package web

import (
	"fmt"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The HTML parser and the Markdown converter take quadratic time for some pages and cannot be
// interrupted. With these limits a hostile page takes at most a few seconds.
const (
	maxHTML    = 1 << 20 // bytes parsed
	maxTags    = 100_000 // parsed
	maxEscapes = 20_000  // characters that Markdown has to escape; a page with more becomes plain text
)

// truncate cuts a page to these limits.
func truncate(page string) (short string, cut bool) {
	short = page
	if len(short) > maxHTML {
		short = strings.ToValidUTF8(short[:maxHTML], "")
	}
	tags := 0
	for i := range len(short) {
		if short[i] == '<' {
			if tags++; tags > maxTags {
				return short[:i], true
			}
		}
	}
	return short, len(short) < len(page)
}

// convert converts a page to Markdown or plain text.
func convert(page, address, format string) (string, error) {
	page, cut := truncate(page)
	toText := markdown
	if format == formatText || strings.Count(page, "[")+strings.Count(page, `\`) > maxEscapes {
		toText = func(page, _ string) (string, error) { return plain(page) }
	}
	out, err := toText(page, address)
	if cut && err == nil {
		out += "\n\n[the page is too large; its end is left out]"
	}
	return out, err
}

// markdown converts a page to Markdown with absolute links.
func markdown(page, address string) (out string, err error) {
	defer recoverPanic(&err)
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	for _, tag := range []string{"nav", "svg", "button", "template", "dialog"} {
		c.Register.TagType(tag, converter.TagTypeRemove, converter.PriorityStandard)
	}
	out, err = c.ConvertString(page, converter.WithDomain(address))
	if err != nil {
		return "", fmt.Errorf("the page cannot be read: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// recoverPanic converts a panic of the parser or converter to an error.
func recoverPanic(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the page cannot be read: %v", p)
	}
}

// plain returns the text of a page, with one line for each block.
func plain(page string) (out string, err error) {
	defer recoverPanic(&err)
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", fmt.Errorf("the page cannot be read: %w", err)
	}
	var b strings.Builder
	write(&b, doc, false)
	var lines []string
	for line := range strings.SplitSeq(b.String(), "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" || len(lines) > 0 && lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n")), nil
}

// write appends the text of a node and its descendants. The parser limits the depth.
func write(b *strings.Builder, n *html.Node, pre bool) {
	if n.Type == html.TextNode {
		if pre {
			b.WriteString(n.Data)
			return
		}
		words := strings.Join(strings.Fields(n.Data), " ")
		if strings.TrimLeft(n.Data, " \t\r\n") != n.Data {
			space(b)
		}
		b.WriteString(words)
		if words != "" && strings.TrimRight(n.Data, " \t\r\n") != n.Data {
			space(b)
		}
		return
	}
	block := false
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Nav, atom.Head, atom.Iframe:
		return
	case atom.Br:
		b.WriteByte('\n')
	case atom.Td, atom.Th:
		space(b)
	case atom.Pre:
		pre, block = true, true
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Main, atom.Header, atom.Footer, atom.Aside, atom.Li, atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd,
		atom.Tr, atom.Table, atom.Blockquote, atom.Hr, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		block = true
	}
	if block {
		newLine(b)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		write(b, c, pre)
	}
	if block {
		newLine(b)
	}
}

// space adds a space between words, newLine a line break between blocks; neither repeats.
func space(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, " ") && !strings.HasSuffix(s, "\n") {
		b.WriteByte(' ')
	}
}

func newLine(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}
