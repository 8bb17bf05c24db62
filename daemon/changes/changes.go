// Package changes is the daemon's change bus: code that changes something that clients see
// publishes a topic, and the daemon's watcher receives the published topics.
//
// A topic that is published several times before the watcher receives it is received once. No
// published topic is lost, even if no watcher is waiting yet. A topic does not carry the new state;
// the watcher reads that from the daemon's snapshot. There is one watcher at a time.
//
// The entry points are New, Bus.Publish and Bus.Next.
package changes

import (
	"context"
	"slices"
	"sync"
)

// Topic names what changed.
type Topic string

// The topics.
const (
	Workspace     Topic = "workspace"     // another client or other workspace folders were configured
	Files         Topic = "files"         // watched files may have changed
	Configuration Topic = "configuration" // a turn has read changed files
	Absence       Topic = "absence"       // a missing file may now count as removed
	Commands      Topic = "commands"      // a command of the configuration has ended
	Credentials   Topic = "credentials"   // changed by a login that no client requested
	Trust         Topic = "trust"         // the workspaces and files that the user trusts
	Extensions    Topic = "extensions"    // rules, skills and other extensions in files
	Servers       Topic = "servers"       // MCP servers, or what they offer
	Models        Topic = "models"        // the models that providers list
	Notices       Topic = "notices"       // failures of telemetry or language servers
)

// Bus carries topics to its watcher.
type Bus struct {
	wake chan struct{} // capacity 1: has an element if topics are pending

	mu      sync.Mutex // guards pending
	pending []Topic
}

// New returns a bus.
func New() *Bus { return &Bus{wake: make(chan struct{}, 1)} }

// Publish announces a change. It does not block.
func (b *Bus) Publish(t Topic) {
	b.mu.Lock()
	if !slices.Contains(b.pending, t) {
		b.pending = append(b.pending, t)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Relay publishes a topic for each value of a channel until ctx ends.
func (b *Bus) Relay(ctx context.Context, values <-chan struct{}, t Topic) {
	for {
		select {
		case <-values:
			b.Publish(t)
		case <-ctx.Done():
			return
		}
	}
}

// Next waits for changes and returns their topics in the order of their first publication. Its only
// error is that of ctx.
func (b *Bus) Next(ctx context.Context) ([]Topic, error) {
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		b.mu.Lock()
		topics := b.pending
		b.pending = nil
		b.mu.Unlock()
		if len(topics) > 0 {
			return topics, nil
		}
	}
}
