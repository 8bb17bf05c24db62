package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/budget"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/daemon/telemetry"
	"github.com/seed-dec29ce4/eca/esrp/journal"
)

// newJournal returns the journal of model and tool calls. It follows the current configuration.
// Secrets are removed as in logs.
func (s *services) newJournal() *journal.Journal {
	return journal.New(s.opts.StateDir, journal.Options{
		Clean: s.Clean, Now: s.opts.Now, Log: s.opts.Log,
		Enabled: func() bool {
			cfg := s.current().config
			return cfg != nil && cfg.Journal.Enabled
		},
		Limits: func() journal.Limits {
			cfg := s.current().config
			if cfg == nil {
				return journal.Limits{}
			}
			return journal.Limits{Bytes: int64(cfg.Journal.MaxSizeMb) << 20, Age: time.Duration(cfg.Journal.RetentionDays) * 24 * time.Hour}
		},
	})
}

// damagedJournal returns an error that says how the journal is damaged and what to do.
func damagedJournal(err error) error {
	return fmt.Errorf("the journal is damaged: %w; eca continues it in a new file; `esrp journal verify` says what is missing. To begin another journal, move the folder away: the record of earlier calls moves with it", err)
}

// checkJournalEnd checks that the last line of the journal is complete.
func checkJournalEnd(state string) error {
	chain := journal.At(state)
	defer chain.Close()
	if err := chain.CheckEnd(); err != nil {
		return damagedJournal(err)
	}
	return nil
}

// recordingsFile lists the folders with recordings.
const recordingsFile = "recordings"

// recordedStore is the chat store with observers. It passes stored events to the journal, which
// learns from them about calls that did not run, and to telemetry; it deletes a chat's journal
// entries and recordings with the chat; and it notifies the indexer of text to add or remove.
type recordedStore struct {
	*store.Store
	calls    *journal.Journal
	exporter *telemetry.Telemetry
	indexer  *indexer
	spending *budget.Keeper
	models   *providers.Models
}

var _ chat.Store = recordedStore{}

// Append implements chat.Store.
func (s recordedStore) Append(ctx context.Context, meta chat.Meta, events []event.Event) error {
	if err := s.Store.Append(ctx, meta, events); err != nil {
		return err
	}
	s.calls.Log(meta.ID, events)
	s.exporter.Log(meta.ID, meta.Parent, events)
	s.indexer.notifyAtEnd(events)
	return nil
}

// Extend implements chat.Store.
func (s recordedStore) Extend(ctx context.Context, id string, events []event.Event) error {
	if err := s.Store.Extend(ctx, id, events); err != nil {
		return err
	}
	s.calls.Log(id, events)
	s.exporter.Log(id, "", events) // no parent needed: the first turn of a subagent's chat goes through Append
	s.indexer.notifyAtEnd(events)
	return nil
}

// Cut implements chat.Store.
func (s recordedStore) Cut(ctx context.Context, meta chat.Meta, from event.Seq, marker event.Event) error {
	defer s.indexer.notify()
	return s.Store.Cut(ctx, meta, from, marker)
}

// Sync implements chat.Store. No turn waits for the journal.
func (s recordedStore) Sync(ctx context.Context) error {
	s.calls.Sync()
	return s.Store.Sync(ctx)
}

// Delete implements chat.Store. It deletes from the store last: if the process dies before, the chat
// still exists and can be deleted again.
func (s recordedStore) Delete(ctx context.Context, id string) error {
	defer s.indexer.notify()
	s.spending.Forget(ctx, id)
	chats, err := s.Subagents(ctx, id)
	for _, chatID := range append(chats, id) {
		err = errors.Join(err, s.models.DeleteRecordings(chatID))
	}
	return errors.Join(err, s.calls.Erase(id), s.Store.Delete(ctx, id))
}
