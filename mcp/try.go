package mcp

import (
	"context"
	"fmt"
	"time"
)

// Try starts a server, even a disabled one, and waits until it runs or has failed. The status has all
// lists of a running server, or the reason why the server failed. An error means that there is no such
// server, that ctx ended, or that a list could not be fetched.
func (m *Manager) Try(ctx context.Context, name string) (Status, error) {
	s, ok := m.server(name)
	if !ok {
		return Status{}, fmt.Errorf("there is no MCP server %.128q", name)
	}
	begun := make(chan struct{})
	s.enqueue(func() {
		defer close(begun)
		if s.state != Starting {
			s.awaitingBegin = false // start the server even if Manager.Begin was not called
		}
		s.start()
	})
	select {
	case <-begun:
	case <-s.done:
	case <-ctx.Done():
		return Status{}, context.Cause(ctx)
	}
	strayTimer, giveUp := m.deps.After(strayOutputWait)
	defer func() { giveUp() }()
	for {
		m.mu.Lock()
		statusChanged := m.statusChanged
		m.mu.Unlock()
		status := *s.status.Load()
		switch status.State {
		case Running:
			return s.withAllLists(ctx, status)
		case Starting, Stopping:
		default:
			return status, nil
		}
		select {
		case <-statusChanged:
		case <-strayTimer:
			if s.strayOutput.Load() != nil {
				s.enqueue(func() { s.stop("it printed text instead of an answer") })
				status.State, status.Reason = Failed, s.describeStrayOutput()
				return status, nil
			}
			strayTimer, giveUp = m.deps.After(strayOutputWait)
		case <-s.done:
			return status, nil
		case <-ctx.Done():
			return status, context.Cause(ctx)
		}
	}
}

// strayOutputWait is how long Try waits for a program that printed text instead of an answer. Some
// servers print a greeting before they can answer, so other callers wait for the full time limit.
const strayOutputWait = 8 * time.Second

// describeStrayOutput describes for the user the text that a starting program printed.
func (s *server) describeStrayOutput() string {
	text := s.strayOutput.Load()
	if text == nil {
		return ""
	}
	return fmt.Sprintf("it printed %q instead of an answer, so it might not be an MCP server: correct its command, or add the argument that makes it serve over stdio", *text)
}

// withAllLists adds to a status the prompts and resources, which are otherwise fetched later.
func (s *server) withAllLists(ctx context.Context, status Status) (Status, error) {
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
