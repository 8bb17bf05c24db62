package remote

import (
	"slices"
	"sync"
)

// questions are the open questions of all streams, by request id.
type questions struct {
	mu      sync.Mutex // guards the fields below
	asked   map[string][]askedQuestion
	settled []string // the last ones that have an answer
}

type askedQuestion struct {
	stream  *stream
	answers chan answer
}

type answer struct {
	Answer    string `json:"answer"`
	Cancelled bool   `json:"cancelled"`
}

const maxSettled = 256

// open adds a question that a stream shows.
func (q *questions) open(id string, s *stream) <-chan answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked == nil {
		q.asked = map[string][]askedQuestion{}
	}
	q.settled = slices.DeleteFunc(q.settled, func(other string) bool { return other == id }) // its stream was gone
	a := askedQuestion{s, make(chan answer, 1)}
	q.asked[id] = append(q.asked[id], a)
	return a.answers
}

// close removes a question from a stream. If no stream is left that shows it, it counts as settled.
func (q *questions) close(id string, s *stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked[id] = slices.DeleteFunc(q.asked[id], func(a askedQuestion) bool { return a.stream == s })
	if len(q.asked[id]) == 0 {
		delete(q.asked, id)
		if !slices.Contains(q.settled, id) {
			q.settled = append(q.settled, id)
			q.settled = q.settled[max(0, len(q.settled)-maxSettled):]
		}
	}
}

// answerState says how an answer was used.
type answerState int

const (
	answerUnknown answerState = iota // there is no such question
	answerTaken
	answerLate // another answer was first
)

// answer answers a question through a stream of the device, or any other. The first answer counts.
func (q *questions) answer(id, deviceID string, a answer) answerState {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.asked[id]
	if slices.Contains(q.settled, id) {
		return answerLate
	}
	if len(list) == 0 {
		return answerUnknown
	}
	by := list[0]
	for _, o := range list {
		if o.stream.device.ID == deviceID {
			by = o
		}
	}
	q.settled = append(q.settled, id)
	by.answers <- a
	return answerTaken
}
