package mcp

import (
	"context"
	"fmt"
)

// Try starts a server, also a disabled one, and waits for what comes of that: it runs, with
// all its lists, or the reason why not is in the status. The error says that nothing came
// of it within ctx.
func (m *Manager) Try(ctx context.Context, name string) (Status, error) {
	s, ok := m.server(name)
	if !ok {
		return Status{}, fmt.Errorf("there is no MCP server %.128q", name)
	}
	begun := make(chan struct{})
	s.tell(func() {
		defer close(begun)
		if s.state != Starting {
			s.idle = false // nothing else has to begin
		}
		s.start()
	})
	select {
	case <-begun:
	case <-s.done:
	case <-ctx.Done():
		return Status{}, context.Cause(ctx)
	}
	for {
		m.mu.Lock()
		told := m.told
		m.mu.Unlock()
		status := *s.status.Load()
		switch status.State {
		case Running:
			return s.listed(ctx, status)
		case Starting, Stopping:
		default:
			return status, nil
		}
		select {
		case <-told:
		case <-s.done:
			return status, nil
		case <-ctx.Done():
			return status, context.Cause(ctx)
		}
	}
}

// listed adds to a status what is usually listed later.
func (s *server) listed(ctx context.Context, status Status) (Status, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return status, err
	}
	offer := *status.Offer
	status.Offer = &offer
	if offer.Prompts, err = conn.listPrompts(ctx, s); err != nil {
		return status, fmt.Errorf("its prompts could not be listed: %w", err)
	}
	if offer.Resources, err = conn.listResources(ctx, s); err != nil {
		return status, fmt.Errorf("its resources could not be listed: %w", err)
	}
	return status, nil
}
