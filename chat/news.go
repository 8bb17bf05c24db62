package chat

import "sync"

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
	mu          sync.Mutex // guards subscribers
	subscribers map[*Subscription]struct{}
}

// Subscription is a face's subscription to the news of other faces.
type Subscription struct {
	room   *newsroom
	notify func(News)
}

// Subscribe calls notify for the news that other subscribers announce, until Close. notify must not
// wait.
func (e *Engine) Subscribe(notify func(News)) *Subscription {
	s := &Subscription{&e.news, notify}
	e.news.mu.Lock()
	defer e.news.mu.Unlock()
	if e.news.subscribers == nil {
		e.news.subscribers = map[*Subscription]struct{}{}
	}
	e.news.subscribers[s] = struct{}{}
	return s
}

// Announce notifies all other subscribers before it returns.
func (s *Subscription) Announce(kind NewsKind, chatID string) {
	s.room.mu.Lock()
	var others []*Subscription
	for o := range s.room.subscribers {
		if o != s {
			others = append(others, o)
		}
	}
	s.room.mu.Unlock()
	for _, o := range others {
		o.notify(News{kind, chatID})
	}
}

// Close ends the subscription. A call of notify that has begun may still run.
func (s *Subscription) Close() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	delete(s.room.subscribers, s)
}
