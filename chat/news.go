package chat

import (
	"maps"
	"slices"
	"sync"
)

// News is a notification about a chat for faces that do not read its log, or not yet.
type News struct {
	Kind   NewsKind
	ChatID string
}

// NewsKind is the kind of a notification.
type NewsKind int

// Kinds of news.
const (
	ChatBegun    NewsKind = iota + 1 // the first prompt of a new chat is about to be submitted
	ChatPrompted                     // a later prompt is about to be submitted
	ChatChanged                      // the title, model, agent, variant or auto-approve has changed
	ChatDeleted
)

// newsHub delivers news to the faces of one engine.
type newsHub struct {
	mu             sync.Mutex // guards the fields below
	subscribers    map[*Subscription]struct{}
	pendingPrompts map[*News]struct{} // prompts that are about to be submitted
}

// Subscription is a face's subscription to the news of other faces.
type Subscription struct {
	hub    *newsHub
	notify func(News)
}

// Subscribe calls notify for the news that other subscribers announce, until Close, and first for the
// prompts that are about to be submitted. notify must not wait.
func (e *Engine) Subscribe(notify func(News)) *Subscription {
	s := &Subscription{&e.news, notify}
	e.news.mu.Lock()
	if e.news.subscribers == nil {
		e.news.subscribers = map[*Subscription]struct{}{}
	}
	e.news.subscribers[s] = struct{}{}
	prompts := slices.Collect(maps.Keys(e.news.pendingPrompts))
	e.news.mu.Unlock()
	for _, n := range prompts {
		notify(*n)
	}
	return s
}

// Announce notifies all other subscribers before it returns.
func (s *Subscription) Announce(kind NewsKind, chatID string) {
	s.announce(News{kind, chatID}, func() {})
}

// AnnouncePrompt is like Announce for a prompt that is about to be submitted. Faces that subscribe
// before the caller calls begun get the news too, because they cannot see yet that the chat runs.
func (s *Subscription) AnnouncePrompt(kind NewsKind, chatID string) (begun func()) {
	b := &News{kind, chatID}
	s.announce(*b, func() {
		if s.hub.pendingPrompts == nil {
			s.hub.pendingPrompts = map[*News]struct{}{}
		}
		s.hub.pendingPrompts[b] = struct{}{}
	})
	return func() {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		delete(s.hub.pendingPrompts, b)
	}
}

// announce notifies all other subscribers. It calls register while no face can subscribe.
func (s *Subscription) announce(n News, register func()) {
	s.hub.mu.Lock()
	register()
	others := slices.DeleteFunc(slices.Collect(maps.Keys(s.hub.subscribers)), func(o *Subscription) bool { return o == s })
	s.hub.mu.Unlock()
	for _, o := range others {
		o.notify(n)
	}
}

// Close ends the subscription. A call of notify that has begun may still run.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subscribers, s)
}
