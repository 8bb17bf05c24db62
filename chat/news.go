package chat

import "sync"

// News is what happens to a chat outside of its log, or before others read the log.
type News struct {
	Kind   NewsKind
	ChatID string
}

// NewsKind says what happened.
type NewsKind int

// Kinds of news.
const (
	ChatBegun    NewsKind = iota + 1 // the first prompt of a new chat is about to be submitted
	ChatPrompted                     // likewise a later prompt
	ChatChanged                      // its title, model, agent, variant or auto-approve
	ChatDeleted
)

// newsroom passes news between the faces of one engine.
type newsroom struct {
	mu          sync.Mutex // guards subscribers
	subscribers map[*Subscription]struct{}
}

// Subscription is one face's part in the news.
type Subscription struct {
	room *newsroom
	heed func(News)
}

// Subscribe calls heed for the news that others announce, until Close. heed does not wait.
func (e *Engine) Subscribe(heed func(News)) *Subscription {
	s := &Subscription{&e.news, heed}
	e.news.mu.Lock()
	defer e.news.mu.Unlock()
	if e.news.subscribers == nil {
		e.news.subscribers = map[*Subscription]struct{}{}
	}
	e.news.subscribers[s] = struct{}{}
	return s
}

// Announce notifies all other faces before it returns.
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
		o.heed(News{kind, chatID})
	}
}

// Close ends the subscription. A call of heed that has begun may still run.
func (s *Subscription) Close() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	delete(s.room.subscribers, s)
}
