package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/undo"
)

// housekeeper removes old chats with everything that belongs to them, old undo data, and old
// journal entries.
type housekeeper struct {
	*services
	engine *chat.Engine
	undo   *undo.Files
	daily  *background
}

// maxUndoAge is how long a change of a file can be undone.
const maxUndoAge = 30 * 24 * time.Hour

func (h *housekeeper) cleanUp(ctx context.Context) {
	h.indexer.begin()
	if age := h.retention(); age > 0 {
		h.expire(ctx, age)
	}
	undoAge := h.undoAge()
	if _, _, err := h.current().storage.artifacts.Collect(ctx, nil, undoAge); err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("cannot remove old artifacts", "err", err)
	}
	if err := h.undo.Clean(ctx, undoAge); err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("cannot remove old undo data", "err", err)
	}
	if err := h.journal.Trim(ctx); err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("cannot trim the journal", "err", err)
	}
}

// KeepClean removes old data now and once a day until ctx ends. It is for long-running processes
// that do not run Tasks.
func (h *housekeeper) KeepClean(ctx context.Context) {
	h.cleanUp(ctx)
	h.cleanDaily(ctx)
}

// cleanDaily cleans up once a day until ctx ends, first after a day.
func (h *housekeeper) cleanDaily(ctx context.Context) {
	tick := time.NewTicker(24 * time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.cleanUp(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// expire removes old chats with everything that was stored for them, and erases their text from the
// files.
func (h *housekeeper) expire(ctx context.Context, age time.Duration) {
	before := h.opts.Now().Add(-age)
	old, err := h.store.Expired(ctx, before)
	removed := 0
	for _, id := range old {
		if ctx.Err() != nil {
			return
		}
		expired, expireErr := h.engine.Expire(ctx, id, before)
		if expireErr != nil {
			err = fmt.Errorf("chat %s: %w", id, expireErr)
		}
		if expired {
			removed++
		}
	}
	h.outputs.Clean(age)
	if removed > 0 {
		h.opts.Log.Info("old chats were removed", "chats", removed, "days", int(age/(24*time.Hour)))
		if shrinkErr := h.store.Shrink(ctx); err == nil {
			err = shrinkErr
		}
		if indexErr := h.indexer.index.Update(ctx); err == nil {
			err = indexErr
		}
	}
	if err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("old chats could not be removed", "err", err)
	}
}
