// Package changes is the daemon's change bus: code that changes something that clients see
// publishes its topic, and the daemon's watcher takes what was published.
//
// A topic that is published again before it was taken is taken once, and nothing that is
// published is lost, also if the watcher does not wait yet. Topics say only what changed, never
// to what: that is read from the daemon's snapshot. There is one watcher at a time.
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
	Workspace   Topic = "workspace"   // another client or other workspace folders were configured
	Files       Topic = "files"       // files that are watched, perhaps
	Absence     Topic = "absence"     // a file was missing long enough to count as removed, perhaps
	Commands    Topic = "commands"    // a command of the configuration has ended
	Credentials Topic = "credentials" // by a login outside of a client's request
	Trust       Topic = "trust"       // what the user trusts
	Extensions  Topic = "extensions"  // the Set of extensions
	Servers     Topic = "servers"     // MCP servers, or what they offer
	Models      Topic = "models"      // which models providers list
	Notices     Topic = "notices"     // of telemetry or language servers that do not work
)

// Bus carries topics to its watcher.
type Bus struct {
	wake chan struct{} // of one: something is pending

	mu      sync.Mutex // guards pending
	pending []Topic
}

// New returns a bus.
func New() *Bus { return &Bus{wake: make(chan struct{}, 1)} }

// Publish announces a change. It does not wait.
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

// Next waits for changes and returns their topics in the order in which they were published
// first. The error is ctx's.
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
