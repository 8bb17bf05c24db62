package chat

import (
	"context"
	"strings"

	"github.com/seed-dec29ce4/eca/tools"
)

// IsSubagent reports whether an id is that of a subagent's chat. Clients cannot use such ids.
func IsSubagent(id string) bool { return strings.HasPrefix(id, tools.SubagentPrefix) }

// openChild returns the session of a subagent's chat.
func (e *Engine) openChild(ctx context.Context, id, parent, title string) (*Session, error) {
	s, isNew, err := e.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	if isNew {
		s.log.SetMeta(func(m *Meta) {
			// Without auto-approve: the parent's current setting applies (turnContext.autoApproves).
			m.Parent, m.Title, m.Named, m.Trust = parent, title, true, false
		})
	}
	return s, nil
}

// closeChildren closes the subagents of a chat that is being removed.
func (e *Engine) closeChildren(parent string) {
	e.mu.Lock()
	var open []*Session
	for id, s := range e.sessions {
		if s.Meta().Parent == parent {
			open = append(open, s)
			delete(e.sessions, id)
		}
	}
	e.mu.Unlock()
	for _, s := range open {
		s.close(errStopped)
	}
}

// Parent returns the parent of a subagent's chat; ok is false for all other chats.
func (e *Engine) Parent(ctx context.Context, id string) (parent string, ok bool) {
	if s, open := e.Lookup(id); open {
		parent = s.Meta().Parent
	} else if meta, _, found, err := e.deps.Store.Meta(ctx, id); found && err == nil {
		parent = meta.Parent
	}
	return parent, parent != ""
}
