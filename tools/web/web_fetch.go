// Package web has the native tool web_fetch, which converts web pages to text for a model. It does
// not decide which pages may be fetched and how much of them: internal/fetch does.
package web

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/fetch"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed web_fetch.md
var webFetchDoc string

// defaultBytes is how many bytes of a page are read by default.
const defaultBytes = 1 << 20

const (
	formatMarkdown = "markdown"
	formatText     = "text"
	formatHTML     = "html"
)

type webFetchArgs struct {
	URL      string `json:"url" jsonschema:"The address of the page: http or https."`
	Format   string `json:"format,omitempty" jsonschema:"The form of an HTML page: markdown (default), text or html."`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"How many bytes of the page to read at most (default: 1048576, at most 5242880)."`
}

// Tools returns the tools of this package.
func Tools(pages *fetch.Getter) []tools.Tool {
	return []tools.Tool{tools.Definition[webFetchArgs]{
		ReadOnly: true, Name: "web_fetch", Description: webFetchDoc, Preparing: "Preparing to fetch a page", Progress: "Fetching page",
		Enums: map[string][]string{"format": {formatMarkdown, formatText, formatHTML}},
		Plan: func(_ context.Context, _ tools.Call, a webFetchArgs) (tools.Plan, error) {
			address, err := pages.Address(a.URL)
			if err != nil {
				return tools.Plan{}, err
			}
			return tools.Plan{Summary: "Fetching " + strings.Join(strings.Fields(a.URL), " "), Address: address.String()}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a webFetchArgs, _ tools.Sink) (tools.Result, error) {
			limit := defaultBytes
			if a.MaxBytes > 0 {
				limit = min(a.MaxBytes, fetch.MaxBytes)
			}
			get := pages.Get
			if !call.Authorization.Approved && !call.Authorization.Auto { // a rule allows this address, not the targets of its redirects
				get = pages.GetFromHost
			}
			page, err := get(ctx, a.URL, limit)
			if err != nil {
				return tools.Result{}, fmt.Errorf("%s could not be fetched: %w", a.URL, err)
			}
			return render(page, a.Format), nil
		},
	}.Build()}
}

// render converts a page to text, preceded by the status and headers.
func render(p *fetch.Page, format string) tools.Result {
	head := fmt.Sprintf("%s: %d %s, %s", p.URL, p.Status, http.StatusText(p.Status), mediaType(p.Type))
	if p.Cut {
		head += fmt.Sprintf(", cut after %d bytes", len(p.Body))
	}
	res := tools.Result{Failed: p.Status < 200 || p.Status > 299}
	if image := workspace.ImageType(p.Body); image != "" && !p.Cut {
		res.Outputs = []string{head}
		res.Images = []event.Image{{MediaType: image, Data: p.Body}}
		return res
	}
	body, err := text(p, format)
	if err != nil {
		body, res.Failed = "["+err.Error()+"]", true
	}
	res.Outputs = []string{head + "\n\n" + body}
	return res
}

// Markdown returns a page as Markdown. If the page was not fetched or is not text, it returns an
// error that completes a sentence about the page.
func Markdown(p *fetch.Page) (string, error) {
	if p.Status < 200 || p.Status > 299 {
		return "", fmt.Errorf("could not be fetched: the server answered %d %s", p.Status, http.StatusText(p.Status))
	}
	body, err := text(p, formatMarkdown)
	if err != nil {
		return "", fmt.Errorf("could not be used: %w", err)
	}
	return body, nil
}

// mediaType returns a Content-Type on one line.
func mediaType(s string) string {
	kind, _, err := mime.ParseMediaType(s)
	if err != nil || kind == "" {
		return "of no known type"
	}
	return kind
}

// text returns a page as text.
func text(p *fetch.Page, format string) (string, error) {
	kind, _, _ := mime.ParseMediaType(p.Type)
	isHTML := kind == "text/html" || kind == "application/xhtml+xml"
	if kind == "" {
		isHTML = strings.HasPrefix(http.DetectContentType(p.Body), "text/html")
	}
	if !isHTML && workspace.IsBinary(p.Body) {
		return "", errors.New("the page is not text")
	}
	body := decode(p, isHTML)
	if !isHTML || format == formatHTML {
		return body, nil
	}
	return convert(body, p.URL, format)
}

// decode converts a page to UTF-8, with the encoding from its headers, its markup or its first
// bytes.
func decode(p *fetch.Page, isHTML bool) string {
	if utf8.Valid(p.Body) {
		return string(p.Body)
	}
	encoding, name, certain := charset.DetermineEncoding(p.Body, p.Type)
	if name != "utf-8" && (isHTML || certain) {
		if out, err := encoding.NewDecoder().Bytes(p.Body); err == nil {
			return string(out)
		}
	}
	return strings.ToValidUTF8(string(p.Body), "�")
}
