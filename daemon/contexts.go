package daemon

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/fetch"
	"github.com/seed-dec29ce4/eca/tools/web"
	"github.com/seed-dec29ce4/eca/workspace"
)

// withMentionedFiles marks the files that the user adds as contexts as recently used in the finder,
// which ranks such files first among equally good matches.
type withMentionedFiles struct {
	contexts.Source
	finder *workspace.Finder
}

// Resolve implements contexts.Source.
func (p withMentionedFiles) Resolve(ctx context.Context, q contexts.Query) ([]contexts.Block, []string) {
	var paths []string
	for _, r := range q.Refs {
		if (r.Type == "file" || r.Type == "cursor") && r.Path != "" {
			paths = append(paths, workspace.Abs(q.Roots, r.Path))
		}
	}
	p.finder.Touch(paths...)
	return p.Source.Resolve(ctx, q)
}

// withRecentFiles marks the files that eca's own tools write as recently used in the finder, even
// if the system reports no change.
type withRecentFiles struct {
	chat.Files
	finder *workspace.Finder
}

// Writing implements chat.Files.
func (u withRecentFiles) Writing(ctx context.Context, chatID, path string, content []byte) (event.FileChanged, error) {
	u.finder.Touch(path)
	return u.Files.Writing(ctx, chatID, path, content)
}

// Rollback implements chat.Files.
func (u withRecentFiles) Rollback(ctx context.Context, events []event.Event) (problems []string) {
	for _, e := range events {
		if c, ok := e.Body.(event.FileChanged); ok {
			u.finder.Touch(c.Path)
		}
	}
	return u.Files.Rollback(ctx, events)
}

// webPages fetches pages that users add as contexts. The rules of the tool web_fetch apply, because
// the addresses in a message may come from anywhere.
type webPages struct{ d *Daemon }

var _ contexts.Fetcher = webPages{}

// Fetch implements contexts.Fetcher.
func (w webPages) Fetch(ctx context.Context, address string) (contexts.Page, error) {
	page, err := w.d.pages(w.d.Config().Config).Get(ctx, address, fetch.MaxBytes)
	if err != nil {
		return contexts.Page{}, fmt.Errorf("could not be fetched: %w", err)
	}
	text, err := web.Markdown(page)
	return contexts.Page{URL: page.URL, Markdown: text, Cut: page.Cut}, err
}
