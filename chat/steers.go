package chat

import (
	"strings"
	"sync"
)

// steers are what the user said since the model was asked.
type steers struct {
	mu    sync.Mutex // guards texts
	texts []string
}

// add takes a text; one without words is dropped.
func (s *steers) add(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

// take returns what was said, and forgets it.
func (s *steers) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.texts
	s.texts = nil
	return out
}

// waiting says whether something was said.
func (s *steers) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.texts) > 0
}
