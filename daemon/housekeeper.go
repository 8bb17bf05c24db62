package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/undo"
)

// housekeeper removes what is kept no longer: old chats with all that belongs to them, and
// what they leave behind.
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
		h.opts.Log.Warn("old artifacts could not be removed", "err", err)
	}
	if err := h.undo.Clean(ctx, undoAge); err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("what was kept to undo commands could not be cleaned up", "err", err)
	}
	if err := h.calls.Trim(ctx); err != nil && ctx.Err() == nil {
		h.opts.Log.Warn("the journal could not be trimmed", "err", err)
	}
}

// KeepClean removes what is kept no longer, now and each day until ctx ends: for processes
// that stay and have no start of which tasks are part.
func (h *housekeeper) KeepClean(ctx context.Context) {
	h.cleanUp(ctx)
	h.cleanDaily(ctx)
}

// cleanDaily cleans up each day, and not at once, until ctx ends.
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

// expire removes old chats with all that was kept of them, and their text from the files.
func (h *housekeeper) expire(ctx context.Context, age time.Duration) {
	before := h.opts.Now().Add(-age)
	old, err := h.store.Expired(ctx, before)
	removed := 0
	for _, id := range old {
		if ctx.Err() != nil {
			return
		}
		gone, expireErr := h.engine.Expire(ctx, id, before)
		if expireErr != nil {
			err = fmt.Errorf("chat %s: %w", id, expireErr)
		}
		if gone {
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
