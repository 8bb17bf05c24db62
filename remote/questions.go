package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// questions are the open questions of all streams, by request id.
type questions struct {
	mu      sync.Mutex // guards the fields below
	asked   map[string][]askedQuestion
	settled []string // the last ones that have an answer
}

type askedQuestion struct {
	stream  *stream
	params  json.RawMessage
	answers chan answer
	taken   bool // an answer was passed on through this stream
}

type answer struct {
	Answer    string `json:"answer"`
	Cancelled bool   `json:"cancelled"`
}

const maxSettled = 256

// open adds a question that a stream shows.
func (q *questions) open(id string, s *stream, params json.RawMessage) <-chan answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked == nil {
		q.asked = map[string][]askedQuestion{}
	}
	q.settled = slices.DeleteFunc(q.settled, func(other string) bool { return other == id }) // the answer was lost with its stream
	a := askedQuestion{stream: s, params: params, answers: make(chan answer, 1)}
	q.asked[id] = append(q.asked[id], a)
	return a.answers
}

// close removes a question from a stream. It counts as settled then, unless the stream is gone: such
// a question stays open, even if an answer was on its way through the stream.
func (q *questions) close(id string, s *stream, gone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.asked[id]
	i := slices.IndexFunc(list, func(a askedQuestion) bool { return a.stream == s })
	switch {
	case gone && list[i].taken:
		q.settled = slices.DeleteFunc(q.settled, func(other string) bool { return other == id })
	case !gone && !slices.Contains(q.settled, id):
		q.settled = append(q.settled, id)
		q.settled = q.settled[max(0, len(q.settled)-maxSettled):]
	}
	if q.asked[id] = slices.Delete(list, i, i+1); len(q.asked[id]) == 0 {
		delete(q.asked, id)
	}
}

// answerState says how an answer was used.
type answerState int

const (
	answerUnknown answerState = iota // there is no such question
	answerTaken
	answerLate      // another answer was first
	answerForbidden // the device may not give it
)

// answer answers a question through a stream of the device, or any other. The first answer counts.
func (q *questions) answer(id string, dev Device, a answer) answerState {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.asked[id]
	if slices.Contains(q.settled, id) {
		return answerLate
	}
	if len(list) == 0 {
		return answerUnknown
	}
	by := &list[0]
	if !mayAnswer(dev.Rights, by.params, encode(a)) {
		return answerForbidden
	}
	for i := range list {
		if list[i].stream.device.ID == dev.ID {
			by = &list[i]
		}
	}
	q.settled = append(q.settled, id)
	by.taken = true
	by.answers <- a
	return answerTaken
}

// questionFor returns the params of chat/askQuestion as a device with some rights is asked, and the
// answers that it may not give: those that allow something from now on need Trust. ok is false if
// the device is not asked, because nothing is left to decide.
func questionFor(rights Rights, params []byte) (shown []byte, withheld []string, ok bool) {
	if rights != Control {
		return params, nil, rights >= Trust
	}
	var members map[string]json.RawMessage
	var options, left []json.RawMessage
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members["options"], &options) != nil {
		return nil, nil, false
	}
	for _, raw := range options {
		var o struct {
			Label  string `json:"label"`
			Grants bool   `json:"grants"`
		}
		switch {
		case json.Unmarshal(raw, &o) != nil:
			return nil, nil, false
		case o.Grants:
			withheld = append(withheld, o.Label)
		default:
			left = append(left, raw)
		}
	}
	if len(withheld) == 0 {
		return params, nil, true
	}
	members["options"] = encode(left)
	return encode(members), withheld, len(left) > 1
}

// mayAnswer reports whether a device with some rights may give an answer, which is JSON. All its
// texts count, so that no spelling of its members hides one.
func mayAnswer(rights Rights, params, answer []byte) bool {
	_, withheld, ok := questionFor(rights, params)
	for texts := json.NewDecoder(bytes.NewReader(answer)); ok && len(withheld) > 0; {
		token, err := texts.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if text, is := token.(string); is && slices.Contains(withheld, text) {
			return false
		}
	}
	return ok
}

// unanswered waits until the stream's server has forgotten a question: it was answered elsewhere, or
// the stream ended. An answer of any kind would say that the user, or the client, refuses; a client
// that left may come back.
func (s *stream) unanswered(ctx context.Context) error {
	if s.ctx.Err() != nil {
		<-s.link.conn.EOF()
	}
	return ctx.Err()
}

// question shows a question and waits for its answer.
func (s *stream) question(params json.RawMessage) (any, error) {
	var q struct {
		ChatID    string `json:"chatId"`
		RequestID string `json:"requestId"`
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	shown, _, ok := questionFor(s.device.Rights, params)
	if !ok { // it waits for a client that may answer
		return jsonrpc.Later(func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, s.unanswered(ctx)
		}), nil
	}
	s.mu.Lock()
	s.asked[q.RequestID] = shown
	s.mu.Unlock()
	answers := s.f.questions.open(q.RequestID, s, params)
	s.put(frame{event: "chat:ask-question", data: shown})
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
		defer func() {
			s.f.questions.close(q.RequestID, s, s.ctx.Err() != nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.asked, q.RequestID)
		}()
		select {
		case a := <-answers:
			return a, nil
		case <-ctx.Done():
			// A page takes a question away only when it is asked again without options.
			s.put(frame{event: "chat:ask-question", data: encode(map[string]any{
				"chatId": q.ChatID, "requestId": q.RequestID, "question": "This question was answered elsewhere.",
				"options": []any{}, "allowFreeform": false, "cancelled": true,
			})})
			return nil, s.unanswered(ctx)
		}
	}), nil
}

// askAgain repeats the open questions of a chat that the device has loaded. A page forgets a question
// about a chat that it has not taken over yet, and nothing says when a slow one has: it is asked a few
// times.
func (s *stream) askAgain(chatID string) {
	s.f.work.Go(func() {
		for wait := settleTime; wait < maxSettleTime; wait *= 2 {
			s.repeatQuestions(chatID)
			select {
			case <-time.After(wait):
			case <-s.ctx.Done():
				return
			}
		}
	})
}

func (s *stream) repeatQuestions(chatID string) {
	s.mu.Lock()
	var list []json.RawMessage
	for _, id := range slices.Sorted(maps.Keys(s.asked)) {
		var q struct {
			ChatID string `json:"chatId"`
		}
		if json.Unmarshal(s.asked[id], &q) == nil && q.ChatID == chatID {
			list = append(list, s.asked[id])
		}
	}
	s.mu.Unlock()
	for _, params := range list {
		s.put(frame{event: "chat:ask-question", data: params})
	}
}
