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
	index   *search.Index
	log     *slog.Logger
	newText chan struct{} // has an element if stored text is not in the index yet
	work    *background
}

func newIndexer(s *store.Store, o Options) *indexer {
	return &indexer{
		index: search.New(search.Options{
			Open: func() (string, search.Source) {
				dir := filepath.Dir(s.Path())
				return dir, o.openStore(dir)
			},
			Workspace: store.WorkspaceKey, Now: o.Now,
			InMemory: func() bool { return o.ReadChats && s.CheckWritable() != nil },
		}),
		log: o.Log, newText: make(chan struct{}, 1), work: newBackground(),
	}
}

// begin updates the index now, and after each notify, until close. The first update also adds
// messages that a killed process did not index.
func (x *indexer) begin() { x.work.begin(x.run) }

// indexDelay is how long the indexer waits before it indexes new text, so that it does not compete
// with the next request of a running conversation.
const indexDelay = 2 * time.Second

func (x *indexer) run(ctx context.Context) {
	wait := time.NewTimer(indexDelay)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		if err := x.index.Update(ctx); err != nil && ctx.Err() == nil {
			x.log.Warn("cannot update the search index", "err", err)
		}
		select {
		case <-x.newText:
		case <-ctx.Done():
			return
		}
		wait.Reset(indexDelay)
	}
}

// notify starts an update of the index. It does not block.
func (x *indexer) notify() {
	select {
	case x.newText <- struct{}{}:
	default:
	}
}

// notifyAtEnd calls notify if the events of a chat end a turn: a turn is indexed when it has ended.
func (x *indexer) notifyAtEnd(events []event.Event) {
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
		x.log.Warn("cannot close the search index", "err", err)
	}
}

// searchWait is how long a search waits for the index.
const searchWait = 300 * time.Millisecond

// Search finds messages in all chats of the machine. It waits until all chats are in the index; without
// waitForIndex, it waits at most for searchWait.
func (d *Daemon) Search(ctx context.Context, query string, limit int, waitForIndex bool) (search.Result, error) {
	wait := searchWait
	if waitForIndex {
		wait = 0
	}
	result, err := d.indexer.index.Search(ctx, search.Parse(query, d.opts.Now()), d.Roots(), limit, wait)
	return result, store.Explain(err, filepath.Join(filepath.Dir(d.store.Path()), search.File))
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
