package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/esrp/journal"
)

// newJournal makes the record of model and tool calls, as the configuration in effect wants
// it. Secrets are removed as they are from logs.
func (d *Daemon) newJournal() *journal.Journal {
	return journal.New(d.opts.StateDir, journal.Options{
		Clean: d.Clean, Now: d.opts.Now, Log: d.opts.Log,
		Enabled: func() bool {
			cfg := d.config.Load()
			return cfg != nil && cfg.Journal.Enabled
		},
		Limits: func() journal.Limits {
			cfg := d.config.Load()
			if cfg == nil {
				return journal.Limits{}
			}
			return journal.Limits{Bytes: int64(cfg.Journal.MaxSizeMb) << 20, Age: time.Duration(cfg.Journal.RetentionDays) * 24 * time.Hour}
		},
	})
}

// recordedStore has the journal do with a chat what the store does: survive, and be gone. Calls
// that did not run it learns from the chat's log.
type recordedStore struct {
	*store.Store
	calls *journal.Journal
}

var _ chat.Store = recordedStore{}

// Append implements chat.Store.
func (s recordedStore) Append(ctx context.Context, meta chat.Meta, events []event.Event) error {
	if err := s.Store.Append(ctx, meta, events); err != nil {
		return err
	}
	s.calls.Log(meta.ID, events)
	return nil
}

// Extend implements chat.Store.
func (s recordedStore) Extend(ctx context.Context, id string, events []event.Event) error {
	if err := s.Store.Extend(ctx, id, events); err != nil {
		return err
	}
	s.calls.Log(id, events)
	return nil
}

// Sync implements chat.Store. Nobody waits for the journal.
func (s recordedStore) Sync(ctx context.Context) error {
	s.calls.Sync()
	return s.Store.Sync(ctx)
}

// Delete implements chat.Store. The journal's comes first: a chat that is still there when the
// process dies in between can be deleted again.
func (s recordedStore) Delete(ctx context.Context, id string) error {
	return errors.Join(s.calls.Erase(id), s.Store.Delete(ctx, id))
}
