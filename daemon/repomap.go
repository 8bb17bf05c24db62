package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/repomap"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Budgets of maps in tokens.
const (
	contextMap = 2000 // clients send the context with every prompt
	shownMap   = 4000 // for /repo-map-show
)

// mapTimeout is how long a prompt waits for its repo map. The part read by then is kept, so a later
// prompt continues from there.
const mapTimeout = 10 * time.Second

// mapper makes maps for tools, contexts and commands.
type mapper struct{ index *repomap.Index }

func (s *services) newMapper() mapper {
	return mapper{repomap.New(repomap.Options{
		CacheDir: s.opts.CacheDir, Git: "git", Children: s.children, Now: s.opts.Now, Getenv: s.opts.Getenv,
		Files: func(ctx context.Context, root string, since workspace.Mark) (*workspace.Listing, bool) {
			roots := s.Roots()
			if !slices.Contains(roots, root) { // the finder has no listing for it, and building one would drop the current one
				return nil, false
			}
			return s.finder.Listing(ctx, roots, root, since)
		},
	})}
}

// RepoMap implements tools/repomap.Mapper.
func (m mapper) RepoMap(ctx context.Context, roots, focus []string, tokens int) (string, error) {
	return m.index.Text(ctx, roots, repomap.Focus{Paths: focus}, tokens)
}

// FindDefinitions implements tools/repomap.Mapper.
func (m mapper) FindDefinitions(ctx context.Context, roots []string, query string, focus []string, tokens int) (string, error) {
	return m.index.FindText(ctx, roots, query, repomap.Focus{Paths: focus}, tokens)
}

// MapContext implements contexts.Mapper.
func (m mapper) MapContext(ctx context.Context, roots []string, about contexts.About) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mapTimeout)
	defer cancel()
	return m.index.Text(ctx, roots, repomap.Focus{Paths: about.Paths, Text: about.Message}, contextMap)
}

// show returns the text of /repo-map-show.
func (m mapper) show(ctx context.Context, roots, focus []string) (string, error) {
	return m.RepoMap(ctx, roots, focus, shownMap)
}
