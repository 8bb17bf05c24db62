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

// newsroom passes news between the faces of one engine.
type newsroom struct {
	mu          sync.Mutex // guards the fields below
	subscribers map[*Subscription]struct{}
	beginning   map[*News]struct{} // prompts that are about to be submitted
}

// Subscription is a face's subscription to the news of other faces.
type Subscription struct {
	room   *newsroom
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
	prompts := slices.Collect(maps.Keys(e.news.beginning))
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

// AnnouncePrompt is like Announce for a prompt that is about to be submitted. Until the caller calls
// begun, the news also goes to those who subscribe, because the chat does not run yet.
func (s *Subscription) AnnouncePrompt(kind NewsKind, chatID string) (begun func()) {
	b := &News{kind, chatID}
	s.announce(*b, func() {
		if s.room.beginning == nil {
			s.room.beginning = map[*News]struct{}{}
		}
		s.room.beginning[b] = struct{}{}
	})
	return func() {
		s.room.mu.Lock()
		defer s.room.mu.Unlock()
		delete(s.room.beginning, b)
	}
}

// announce notifies all other subscribers. note runs while no other subscriber can come.
func (s *Subscription) announce(n News, note func()) {
	s.room.mu.Lock()
	note()
	others := slices.DeleteFunc(slices.Collect(maps.Keys(s.room.subscribers)), func(o *Subscription) bool { return o == s })
	s.room.mu.Unlock()
	for _, o := range others {
		o.notify(n)
	}
}

// Close ends the subscription. A call of notify that has begun may still run.
func (s *Subscription) Close() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	delete(s.room.subscribers, s)
}
