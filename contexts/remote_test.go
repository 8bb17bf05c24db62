package contexts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type webFunc func(ctx context.Context, url string) (Page, error)

func (f webFunc) Fetch(ctx context.Context, url string) (Page, error) { return f(ctx, url) }

type resourceFunc func(server, uri string) ([]Block, error)

func (f resourceFunc) ReadResource(_ context.Context, server, uri string) ([]Block, error) {
	return f(server, uri)
}

func TestWeb(t *testing.T) {
	asked := make(chan string, 100)
	local := Local{Web: webFunc(func(_ context.Context, url string) (Page, error) {
		asked <- url
		switch {
		case strings.HasSuffix(url, "/moved"):
			return Page{URL: "https://b.example/", Markdown: "# there"}, nil
		case strings.HasSuffix(url, "/long"):
			return Page{URL: url, Markdown: strings.Repeat("line\n", maxPage)}, nil
		case strings.HasSuffix(url, "/cut"):
			return Page{Markdown: "beginning", Cut: true}, nil
		case strings.HasSuffix(url, "/empty"):
			return Page{Markdown: " \n"}, nil
		case strings.HasSuffix(url, "/bad"):
			return Page{}, errors.New("is not there: the server answered 404")
		case strings.HasSuffix(url, "/panic"):
			panic("oops")
		}
		return Page{URL: url, Markdown: "text\xff"}, nil
	})}
	get := func(urls ...string) string {
		var refs []Ref
		for _, u := range urls {
			refs = append(refs, Ref{Type: "web", URL: u})
		}
		blocks, problems := local.Resolve(context.Background(), Query{Refs: refs})
		return render("/nowhere", blocks, problems)
	}
	for url, want := range map[string]string{
		"https://a.example/":      "https://a.example/=text\uFFFD",
		" https://a.example/ ":    "https://a.example/=text\uFFFD",
		"https://a.example/moved": "https://a.example/moved (https://b.example/)=# there",
		"https://a.example/cut":   "https://a.example/cut=beginning\n[The rest of this page is left out.]",
		"https://a.example/empty": "! https://a.example/empty has no text",
		"https://a.example/bad":   "! https://a.example/bad is not there: the server answered 404",
		"https://a.example/panic": "! https://a.example/panic could not be read: oops",
		"file:///etc/passwd":      "! file:///etc/passwd is not the address of a web page",
		"https://":                "! https:// is not the address of a web page",
		"":                        "!  is not the address of a web page",
	} {
		if got := get(url); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", url, got, want)
		}
	}
	if got := get("https://a.example/long"); len(got) > maxPage+200 || !strings.HasSuffix(got, "line\n[The rest of this page is left out.]") {
		t.Errorf("a long page: %d bytes, …%q", len(got), got[len(got)-60:])
	}
	for len(asked) > 0 {
		<-asked
	}
	if get("https://a.example/x", "https://a.example/x"); len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
	var many []string
	for i := range maxRemote + 2 {
		many = append(many, fmt.Sprint("https://a.example/", i))
	}
	if got := get(many...); strings.Count(got, "! ") != 2 || !strings.Contains(got, "one prompt may have 10 pages and resources") {
		t.Errorf("many pages: %s", got)
	}
}

func TestResources(t *testing.T) {
	local := Local{Resources: resourceFunc(func(server, uri string) ([]Block, error) {
		switch uri {
		case "db://none":
			return nil, nil
		case "db://gone":
			return nil, errors.New("is not known to the server")
		}
		return []Block{{Text: server + " has " + uri}, {Label: "pic", MediaType: "image/png", Data: []byte(png)}}, nil
	})}
	for ref, want := range map[[2]string]string{
		{"pg", "db://t"}:    "db://t=pg has db://t\npic=image/png 33",
		{"pg", "db://none"}: "! db://none of MCP server pg is empty",
		{"pg", "db://gone"}: "! db://gone of MCP server pg is not known to the server",
		{"", "db://t"}:      "! db://t of MCP server  is a resource without an address or a server",
	} {
		r := Ref{Type: "mcpResource", Server: ref[0], URL: ref[1]}
		blocks, problems := local.Resolve(context.Background(), Query{Refs: []Ref{r, r}})
		if got := render("/nowhere", blocks, problems); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", ref, got, want)
		}
	}
}

func TestFetchProgress(t *testing.T) {
	page, other, resource := Ref{Type: "web", URL: "https://a.example/x?secret=1"}, Ref{Type: "web", URL: "https://b.example/"}, Ref{Type: "mcpResource", Server: "pg", URL: "db://t"}
	for want, refs := range map[string][]Ref{
		"":                                      {{Type: "file", Path: "a"}, {Type: "web", URL: ":"}, {Type: "web", URL: "ftp://a.example"}},
		"Fetching from a.example (at most 10s)": {page, page},
		"Fetching from pg (at most 10s)":        {resource},
		"Fetching from a.example and 2 more (at most 10s)": {page, other, resource},
	} {
		if got := FetchProgress(refs); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// All slow servers share one time limit.
func TestFetchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := Local{Web: webFunc(func(ctx context.Context, _ string) (Page, error) {
			select {
			case <-ctx.Done():
				return Page{}, fmt.Errorf("get: %w", ctx.Err())
			case <-time.After(time.Hour):
				return Page{}, errors.New("too late")
			}
		})}
		start := time.Now()
		_, problems := local.Resolve(context.Background(), Query{Refs: []Ref{{Type: "web", URL: "https://a/1"}, {Type: "web", URL: "https://a/2"}}})
		if len(problems) != 2 || problems[1] != "https://a/2 did not come within 10s" || time.Since(start) != fetchTimeout {
			t.Errorf("%v after %s", problems, time.Since(start))
		}
	})
}
