package contexts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of remote contexts.
const (
	maxRemote    = 10        // remote contexts in one prompt
	maxPage      = 128 << 10 // bytes of a page; the rest is cut
	fetchTimeout = 10 * time.Second
)

// FetchProgress returns a progress text about the contexts that are fetched from servers, and how long
// that may take; empty if there are no such contexts.
func FetchProgress(refs []Ref) string {
	var names []string
	for _, ref := range refs {
		name := ""
		switch ref.Type {
		case "web":
			if u, err := url.Parse(strings.TrimSpace(ref.URL)); err == nil && strings.HasPrefix(u.Scheme, "http") {
				name = u.Host
			}
		case "mcpResource":
			name = ref.Server
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Fetching from %.100s (at most %s)", names[0], fetchTimeout)
	}
	return fmt.Sprintf("Fetching from %.100s and %d more (at most %s)", names[0], len(names)-1, fetchTimeout)
}

// Page is a web page.
type Page struct {
	URL      string // the final address, after redirects
	Markdown string
	Cut      bool // the page was longer
}

// Fetcher fetches web pages.
type Fetcher interface {
	// Fetch returns a page. It decides which addresses are allowed; an error completes a sentence
	// that begins with the address.
	Fetch(ctx context.Context, url string) (Page, error)
}

// Resources reads resources of MCP servers.
type Resources interface {
	// ReadResource returns the contents of a resource: texts, and images of the types that a Block
	// accepts. An error completes a sentence that begins with the address.
	ReadResource(ctx context.Context, server, uri string) ([]Block, error)
}

// remoteKey identifies a remote context.
type remoteKey struct{ kind, server, url string }

// remoteBlocks is the result of fetching a remote context.
type remoteBlocks struct {
	blocks []Block
	err    error
}

func keyOf(ref Ref) remoteKey { return remoteKey{ref.Type, ref.Server, strings.TrimSpace(ref.URL)} }

// fetch fetches all remote contexts in parallel, each once.
func (l Local) fetch(ctx context.Context, refs []Ref) map[remoteKey]*remoteBlocks {
	out := map[remoteKey]*remoteBlocks{}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("did not come within %s", fetchTimeout))
	defer cancel()
	var running sync.WaitGroup
	for _, ref := range refs {
		if ref.Type != "web" && ref.Type != "mcpResource" {
			continue
		}
		key := keyOf(ref)
		if _, known := out[key]; known {
			continue
		}
		if len(out) == maxRemote {
			break
		}
		result := &remoteBlocks{}
		out[key] = result
		running.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					result.err = fmt.Errorf("could not be read: %v", p)
				}
			}()
			if key.kind == "web" {
				result.blocks, result.err = l.page(ctx, key.url)
			} else {
				result.blocks, result.err = l.resource(ctx, key)
			}
			if result.err != nil && ctx.Err() != nil {
				result.err = context.Cause(ctx)
			}
		})
	}
	running.Wait()
	return out
}

// page fetches a web page.
func (l Local) page(ctx context.Context, address string) ([]Block, error) {
	u, err := url.Parse(address)
	switch {
	case l.Web == nil:
		return nil, errors.New("is a web page: those cannot be fetched here")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("is not the address of a web page")
	}
	p, err := l.Web.Fetch(ctx, address)
	if err != nil {
		return nil, err
	}
	text := strings.ToValidUTF8(p.Markdown, "\uFFFD")
	if len(text) > maxPage {
		text, p.Cut = cutText(text, maxPage), true
	}
	switch {
	case strings.TrimSpace(text) == "":
		return nil, errors.New("has no text")
	case p.Cut:
		text += "\n[The rest of this page is left out.]"
	}
	label := address
	if p.URL != "" && p.URL != address {
		label += " (" + p.URL + ")"
	}
	return []Block{{Label: label, Text: text}}, nil
}

// resource reads a resource of an MCP server.
func (l Local) resource(ctx context.Context, key remoteKey) ([]Block, error) {
	switch {
	case l.Resources == nil:
		return nil, errors.New("is a resource of an MCP server: those cannot be read here")
	case key.server == "" || key.url == "":
		return nil, errors.New("is a resource without an address or a server")
	}
	blocks, err := l.Resources.ReadResource(ctx, key.server, key.url)
	if err == nil && len(blocks) == 0 {
		err = errors.New("is empty")
	}
	for i := range blocks {
		blocks[i].Text = strings.ToValidUTF8(blocks[i].Text, "\uFFFD")
		if blocks[i].Label == "" {
			blocks[i].Label = key.url
		}
	}
	return blocks, err
}

// addRemote adds the result for a remote context.
func (r *resolver) addRemote(ref Ref) error {
	key := keyOf(ref)
	name := fmt.Sprintf("%.200s", key.url)
	if key.kind == "mcpResource" {
		name += fmt.Sprintf(" of MCP server %.100s", key.server)
	}
	result, ok := r.remote[key]
	switch {
	case !ok:
		return fmt.Errorf("%s is left out: one prompt may have %d pages and resources", name, maxRemote)
	case result.err != nil:
		return fmt.Errorf("%s %w", name, result.err)
	}
	for i, b := range result.blocks {
		if err := r.addBlock(fmt.Sprintf("%s %s %s %d", key.kind, key.server, key.url, i), b); err != nil {
			return err
		}
	}
	return nil
}
