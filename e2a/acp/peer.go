package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// peer speaks to the client.
type peer struct {
	gone func(error) // the client does not listen any more

	writing sync.Mutex // messages are written whole
	out     io.Writer

	mu      sync.Mutex // guards what follows
	last    int64
	waiting map[string]chan message // for answers, by the request's id
	left    bool                    // nobody answers any more
}

// errLeft is a question to a client that has left.
var errLeft = errors.New("the client has left")

func (p *peer) write(m message) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if _, err = p.out.Write(append(line, '\n')); err != nil {
		p.gone(err)
	}
	return err
}

// notify tells something.
func (p *peer) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return p.write(message{Method: method, Params: raw})
}

// answer answers a request. An answer that nobody takes ends the connection.
func (p *peer) answer(id json.RawMessage, result any, err error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	m := message{ID: id}
	if err == nil {
		m.Result, err = json.Marshal(result)
	}
	if err != nil {
		m.Result, m.Error = nil, asError(err)
	}
	_ = p.write(m)
}

// call asks the client. If ctx ends first, it is told that nobody waits any more.
func (p *peer) call(ctx context.Context, method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	id, answers, err := p.expect()
	if err != nil {
		return err
	}
	defer p.forget(id)
	if err := p.write(message{ID: json.RawMessage(id), Method: method, Params: raw}); err != nil {
		return err
	}
	select {
	case m, ok := <-answers:
		switch {
		case !ok:
			return errLeft
		case m.Error != nil:
			return m.Error
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("the client's answer: %w", jsonrpc.Explain(m.Result, err))
		}
		return nil
	case <-ctx.Done():
		_ = p.notify("$/cancel_request", map[string]any{"requestId": json.RawMessage(id)})
		return context.Cause(ctx)
	}
}

func (p *peer) expect() (id string, answers chan message, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return "", nil, errLeft
	}
	if p.waiting == nil {
		p.waiting = map[string]chan message{}
	}
	p.last++
	id, answers = strconv.FormatInt(p.last, 10), make(chan message, 1)
	p.waiting[id] = answers
	return id, answers, nil
}

func (p *peer) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// answered passes an answer on. One that nobody waits for is dropped.
func (p *peer) answered(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ch, ok := p.waiting[string(m.ID)]; ok {
		delete(p.waiting, string(m.ID))
		ch <- m
	}
}

// leave fails what waits for an answer.
func (p *peer) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	for id, ch := range p.waiting {
		delete(p.waiting, id)
		close(ch)
	}
}
