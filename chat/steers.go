package chat

import (
	"strings"
	"sync"
)

// steers are the messages of the user during a turn that are not in the chat yet.
type steers struct {
	mu    sync.Mutex // guards texts
	texts []string
}

// add adds a message, unless it is blank.
func (s *steers) add(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

// take removes all messages and returns them.
func (s *steers) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.texts
	s.texts = nil
	return out
}

// waiting reports whether there are messages.
func (s *steers) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.texts) > 0
}
