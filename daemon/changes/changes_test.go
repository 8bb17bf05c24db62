package changes_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon/changes"
)

// Next returns topics that were published before the call, in order and once each.
func TestNext(t *testing.T) {
	bus := changes.New()
	for _, topic := range []changes.Topic{changes.Trust, changes.Models, changes.Trust} {
		bus.Publish(topic)
	}
	if got, err := bus.Next(t.Context()); err != nil || !slices.Equal(got, []changes.Topic{changes.Trust, changes.Models}) {
		t.Errorf("%v, %v", got, err)
	}
	values, ctx := make(chan struct{}), t.Context()
	go bus.Relay(ctx, values, changes.Files)
	values <- struct{}{}
	if got, err := bus.Next(t.Context()); err != nil || !slices.Equal(got, []changes.Topic{changes.Files}) {
		t.Errorf("%v, %v", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := bus.Next(over); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", got, err)
	}
}
