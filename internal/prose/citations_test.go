package prose

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const numbers = `((?:\s*(?:,|and|to|or)?\s*(?:sections?\s+|parts?\s+|Appendix\s+)?(?:[A-D]\d|\d+(?:\.\d+)*|[A-C])\b)+)`

var (
	citation = regexp.MustCompile(`\b(eca-protocol|eca-features|acp-a2a|esrp|ecp|e2a|guard|evaluation|eca-remote|editors|ecp-1\.0)(?:\.md|\b),?\s+(?:contract,?\s+)?` + numbers)
	document = regexp.MustCompile(`\b(eca-[a-z]+|acp-a2a|guard|evaluation)\.md\b|\b(?:contract|see) ((?:esrp|ecp|e2a)\.md)\b`)
	contract = regexp.MustCompile(`\bcontract,?\s+` + numbers)
	number   = regexp.MustCompile(`[A-D]\d|\d+(?:\.\d+)*|\b[A-C]\b`)
	heading  = regexp.MustCompile(`(?m)^#+ (?:Appendix )?([A-D]\d?|\d+(?:\.\d+)*)\b`)
)

// Every citation of a contract in a Go comment names a document in docs/contracts and sections
// that it has.
func TestCitations(t *testing.T) {
	sections := contracts(t)
	cited := 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() && isSkipped(name) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			n, wrong := wrongCitations(sections, strings.Join(strings.Fields(group.Text()), " "))
			cited += n
			for _, w := range wrong {
				t.Errorf("%s:%d: %s", name, files.Position(group.Pos()).Line, w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const fewest = 150
	if cited < fewest {
		t.Errorf("only %d citations are seen", cited)
	}
}

// contracts returns the numbers of the sections of each contract.
func contracts(t *testing.T) map[string]map[string]bool {
	t.Helper()
	sections := map[string]map[string]bool{}
	pages, err := filepath.Glob(filepath.Join(top, "docs", "contracts", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		numbers := map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			numbers[m[1]] = true
		}
		sections[strings.TrimSuffix(filepath.Base(page), ".md")] = numbers
	}
	return sections
}

// wrongCitations checks the citations in a comment, and returns how many it has. A number alone
// ("contract 3") is wrong, because it does not name the document.
func wrongCitations(sections map[string]map[string]bool, text string) (cited int, wrong []string) {
	check := func(words, page, list string) {
		if sections[page] == nil {
			wrong = append(wrong, words+": there is no docs/contracts/"+page+".md")
			return
		}
		for _, n := range number.FindAllString(list, -1) {
			cited++
			if !sections[page][n] {
				wrong = append(wrong, words+": docs/contracts/"+page+".md has no section "+n)
			}
		}
	}
	for _, m := range document.FindAllStringSubmatch(text, -1) {
		page := strings.TrimSuffix(m[1]+m[2], ".md")
		if sections[page] == nil {
			check(m[0], page, "")
		}
	}
	for _, m := range citation.FindAllStringSubmatch(text, -1) {
		check(m[0], m[1], m[2])
	}
	for _, m := range contract.FindAllString(text, -1) {
		wrong = append(wrong, m+": name the document, for example esrp.md 3")
	}
	return cited, wrong
}

func TestWrongCitations(t *testing.T) {
	sections := map[string]map[string]bool{"eca-protocol": {"1": true, "1.2": true}, "esrp": {"3": true}, "acp-a2a": {"A1": true}}
	for _, c := range []struct {
		text         string
		cited, wrong int
	}{
		{"as it should be (eca-protocol 1.2).", 1, 0},
		{"sections (eca-protocol, sections 1 and 1.2) and (acp-a2a.md A1)", 3, 0},
		{"(eca-protocol 7.1)", 1, 1},
		{"(guard.md 3)", 0, 2},
		{"as evaluation.md says", 0, 1},
		{"the order (esrp.md 3), then (esrp.md 4, rule 6)", 2, 1},
		{"the order (contract 3), then (contract, section 4)", 0, 2},
		{"the contract of others; version 2 of e2a-like things", 0, 0},
	} {
		cited, wrong := wrongCitations(sections, c.text)
		if cited != c.cited || len(wrong) != c.wrong {
			t.Errorf("%q: %d citations, wrong: %v", c.text, cited, wrong)
		}
	}
}
