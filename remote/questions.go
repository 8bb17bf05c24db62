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

// questions records the open questions of all streams, and the last ones that were answered.
type questions struct {
	mu          sync.Mutex // guards the fields below
	byID        map[string][]shownQuestion
	answeredIDs []string // ids of the questions that were answered last
}

type shownQuestion struct {
	stream     *stream
	params     json.RawMessage
	answers    chan answer
	answerSent bool // an answer was passed on through this stream
}

type answer struct {
	Answer    string `json:"answer"`
	Cancelled bool   `json:"cancelled"`
}

const maxAnswered = 256

// open adds a question that a stream shows. The channel receives its answer.
func (q *questions) open(id string, s *stream, params json.RawMessage) <-chan answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byID == nil {
		q.byID = map[string][]shownQuestion{}
	}
	q.answeredIDs = slices.DeleteFunc(q.answeredIDs, func(other string) bool { return other == id }) // the question is asked again, so an earlier answer was lost with its stream
	a := shownQuestion{stream: s, params: params, answers: make(chan answer, 1)}
	q.byID[id] = append(q.byID[id], a)
	return a.answers
}

// close removes a question from a stream. The question then counts as answered, unless the stream has
// ended (gone): it then stays open, even if an answer was on its way through the stream.
func (q *questions) close(id string, s *stream, gone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.byID[id]
	i := slices.IndexFunc(list, func(a shownQuestion) bool { return a.stream == s })
	switch {
	case gone && list[i].answerSent:
		q.answeredIDs = slices.DeleteFunc(q.answeredIDs, func(other string) bool { return other == id })
	case !gone && !slices.Contains(q.answeredIDs, id):
		q.answeredIDs = append(q.answeredIDs, id)
		q.answeredIDs = q.answeredIDs[max(0, len(q.answeredIDs)-maxAnswered):]
	}
	if q.byID[id] = slices.Delete(list, i, i+1); len(q.byID[id]) == 0 {
		delete(q.byID, id)
	}
}

// answerState is the outcome of an answer to a question.
type answerState int

const (
	answerUnknown answerState = iota // there is no such question
	answerAccepted
	answerLate      // the question was already answered
	answerForbidden // the device has no right to give this answer
)

// answer passes an answer on through a stream of the device that shows the question, or else through
// any other stream that does. The first answer counts.
func (q *questions) answer(id string, dev Device, a answer) answerState {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.byID[id]
	if slices.Contains(q.answeredIDs, id) {
		return answerLate
	}
	if len(list) == 0 {
		return answerUnknown
	}
	target := &list[0]
	if !mayAnswer(dev.Rights, target.params, encode(a)) {
		return answerForbidden
	}
	for i := range list {
		if list[i].stream.device.ID == dev.ID {
			target = &list[i]
		}
	}
	q.answeredIDs = append(q.answeredIDs, id)
	target.answerSent = true
	target.answers <- a
	return answerAccepted
}

// questionFor returns the params of chat/askQuestion for a device with these rights. Options that
// grant something permanently need Trust; for other devices, they are removed and returned in withheld.
// ok is false if the device does not get the question, because too few options remain.
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

// mayAnswer reports whether a device with these rights may give an answer, which is JSON. It checks all
// texts in the answer, because the protocol accepts several spellings of its members.
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

// unansweredError returns the error for a question that this stream does not answer, because it was
// answered elsewhere or the stream has ended. If the stream has ended, unansweredError first waits until
// the stream's server has noticed that: an earlier answer would count as a refusal by the user, but the
// page may come back.
func (s *stream) unansweredError(ctx context.Context) error {
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
	if !ok { // the question waits for a client that may answer it
		return jsonrpc.Later(func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, s.unansweredError(ctx)
		}), nil
	}
	s.mu.Lock()
	s.openQuestions[q.RequestID] = shown
	s.mu.Unlock()
	answers := s.f.questions.open(q.RequestID, s, params)
	s.put(frame{event: "chat:ask-question", data: shown})
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
		defer func() {
			s.f.questions.close(q.RequestID, s, s.ctx.Err() != nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.openQuestions, q.RequestID)
		}()
		select {
		case a := <-answers:
			return a, nil
		case <-ctx.Done():
			// A page removes a question only if it gets the question again without options.
			s.put(frame{event: "chat:ask-question", data: encode(map[string]any{
				"chatId": q.ChatID, "requestId": q.RequestID, "question": "This question was answered elsewhere.",
				"options": []any{}, "allowFreeform": false, "cancelled": true,
			})})
			return nil, s.unansweredError(ctx)
		}
	}), nil
}

// askAgain repeats the open questions of a chat that the device has loaded. A page drops a question
// about a chat that it does not display yet, and eca cannot see when it does. Therefore, askAgain
// repeats the questions a few times, with growing pauses.
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
	for _, id := range slices.Sorted(maps.Keys(s.openQuestions)) {
		var q struct {
			ChatID string `json:"chatId"`
		}
		if json.Unmarshal(s.openQuestions[id], &q) == nil && q.ChatID == chatID {
			list = append(list, s.openQuestions[id])
		}
	}
	s.mu.Unlock()
	for _, params := range list {
		s.put(frame{event: "chat:ask-question", data: params})
	}
}
