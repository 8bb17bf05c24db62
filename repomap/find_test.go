package repomap

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// A query of a name, of a name with its container, or of words finds definitions, the best match
// first.
func TestFind(t *testing.T) {
	root := t.TempDir()
	files := shop()
	files["api.py"] = "class Basket:\n    def add_item(self):\n        pass\n    def add_items_later(self):\n        pass\n\ndef BasketAddItem():\n    pass\n"
	testkit.WriteFiles(t, root, files)
	x := New(Options{})
	defer x.Close()
	for _, c := range []struct{ query, want string }{
		{"NobodyCalls", "odd/odd.go:3: func NobodyCalls()\n"},
		{"nobodycalls()", "odd/odd.go:3: func NobodyCalls()\n"},
		{"nobody", "odd/odd.go:3: func NobodyCalls()\n"},
		{"calls nobody", "odd/odd.go:3: func NobodyCalls()\n"},
		{"AddItem", "core/basket.go:6: func (b *Basket) AddItem(name string) error\napi.py:2: def add_item(self) (in Basket)\napi.py:4: def add_items_later(self) (in Basket)\napi.py:7: def BasketAddItem()\n"},
		{"Basket.add_item", "api.py:2: def add_item(self) (in Basket)\ncore/basket.go:6: func (b *Basket) AddItem(name string) error\napi.py:4: def add_items_later(self) (in Basket)\napi.py:7: def BasketAddItem()\n"},
		{"api::Basket", "api.py:1: class Basket\napi.py:7: def BasketAddItem()\n"},
		{"class basket", "api.py:1: class Basket\n"},
		{"NobodyAnswers", ""},
		{"", ""},
		{"()", ""},
		{"::", ""},
		{"\xff", ""},
	} {
		got, err := x.FindText(context.Background(), []string{root}, c.query, Focus{}, 1000)
		if err != nil || got != c.want {
			t.Errorf("%q (%v):\n%swant:\n%s", c.query, err, got, c.want)
		}
	}
	if _, err := x.FindText(context.Background(), []string{root + "/none"}, "x", Focus{}, 100); err == nil {
		t.Error("FindText returned no error for a root that does not exist")
	}
}

// The text of a search has its budget, and says how much it leaves out.
func TestFindIsBounded(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("f%d.go", i)] = fmt.Sprintf("package a\n\nfunc CommonName%d() {}\n", i)
	}
	testkit.WriteFiles(t, root, files)
	x := New(Options{})
	defer x.Close()
	hits := mapOf(t, x, root, Focus{}).Find("common name")
	if len(hits) != 300 {
		t.Fatalf("%d definitions", len(hits))
	}
	for _, tokens := range []int{0, 1, 10, 11, 12, 13, 50, 1000, 100_000} {
		text := HitsText(hits, tokens)
		if Tokens(text) > tokens {
			t.Errorf("%d tokens: the text has %d", tokens, Tokens(text))
		}
		shown := strings.Count(text, "CommonName")
		if text != "" && !strings.HasSuffix(text, fmt.Sprintf("\n%d more\n", 300-shown)) || shown > maxHits {
			t.Errorf("%d tokens: %d shown\n%s", tokens, shown, text)
		}
	}
}
