package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/chat/store"
)

// indexer keeps the search index up to date in the background.
type indexer struct {
	index *search.Index
	log   *slog.Logger
	news  chan struct{} // something was stored that is not in the index
	work  *background
}

func newIndexer(s *store.Store, o Options) *indexer {
	return &indexer{
		index: search.New(search.Options{
			Open: func() (string, search.Source) {
				dir := filepath.Dir(s.Path())
				return dir, store.New(dir)
			},
			Workspace: store.WorkspaceKey, Now: o.Now,
		}),
		log: o.Log, news: make(chan struct{}, 1), work: newBackground(),
	}
}

// begin updates the index, now and whenever there is something new, until close. The
// first update finds the messages that a killed process left.
func (x *indexer) begin() { x.work.begin(x.run) }

// quiet is how long the indexer waits before it takes up what is new: in a running
// conversation it should not compete with the next request.
const quiet = 2 * time.Second

func (x *indexer) run(ctx context.Context) {
	wait := time.NewTimer(quiet)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		if err := x.index.Update(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("the search index could not be updated", "err", err)
		}
		select {
		case <-x.news:
		case <-ctx.Done():
			return
		}
		wait.Reset(quiet)
	}
}

// notify says that there is something new. It does not wait.
func (x *indexer) notify() {
	select {
	case x.news <- struct{}{}:
	default:
	}
}

// appended is notify for events of a chat: a turn is indexed when it has ended.
func (x *indexer) appended(events []event.Event) {
	for _, e := range events {
		if _, end := e.Body.(event.TurnFinished); end {
			x.notify()
			return
		}
	}
}

func (x *indexer) close() {
	x.work.close()
	if err := x.index.Close(); err != nil {
		x.log.Warn("the search index could not be closed", "err", err)
	}
}

// searchPatience is how long a search waits for the index.
const searchPatience = 300 * time.Millisecond

// Search finds messages in all chats of the machine. It waits for the index to be
// up to date: for a moment, or with all as long as it takes.
func (d *Daemon) Search(ctx context.Context, query string, limit int, all bool) (search.Result, error) {
	patience := searchPatience
	if all {
		patience = 0
	}
	return d.indexer.index.Search(ctx, search.Parse(query, d.opts.Now()), d.Roots(), limit, patience)
}

// ExportChat writes a stored chat as /export does.
func (d *Daemon) ExportChat(ctx context.Context, id string, w io.Writer) error {
	meta, _, found, err := d.store.Meta(ctx, id)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("chat not found: %s", id)
	}
	return d.commands.Export(ctx, meta, w)
}
