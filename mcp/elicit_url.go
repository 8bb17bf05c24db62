package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// Answers to a question about a page of a server's.
const (
	openLabel = "Open it"
	selfLabel = "I open it myself"
	doneLabel = "Continue"
	stopLabel = "Cancel"
)

// maxPageRounds bounds how often one call may ask for pages before it is done.
const maxPageRounds = 3

// pageRequest is what a server says about a page that the user should open.
type pageRequest struct {
	Mode    string `json:"mode"`
	Message string `json:"message"`
	URL     string `json:"url"`
	ID      string `json:"elicitationId"`
}

// page is an address that a server wants the user to open.
type page struct {
	address string
	host    string
	notes   []string // what the user should know before
}

// readPage checks an address. It has to be one that can be shown whole, and that a browser
// takes.
func readPage(address string) (page, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return page{}, errors.New("the url is not an http or https address")
	case len(address) > maxURI:
		return page{}, fmt.Errorf("the url is longer than %d bytes", maxURI)
	}
	p := page{address: u.String(), host: u.Host}
	name := u.Hostname()
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) || strings.Contains(strings.ToLower(name), "xn--") {
		p.notes = append(p.notes, "the name of the host has letters that may look like others")
	}
	if u.User != nil {
		p.notes = append(p.notes, "what stands before the @ is not the host")
	}
	if u.Scheme == "http" && !localhost.Is(name) {
		p.notes = append(p.notes, "the connection is not encrypted")
	}
	return p, nil
}

// elicitPage asks the user to open a page. Nothing is fetched or opened before the user says
// so; eca learns nothing of what happens there.
func (m *Manager) elicitPage(ctx context.Context, asker Asker, r ServerRequest, call ActiveCall, p pageRequest) (action string, err error) {
	target, err := readPage(p.URL)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("The MCP server `%s` asks, for the call of %s:\n\n%s\n\nIt wants you to open a page at **%s**:\n\n%s",
		r.Server, call.Tool, plain(p.Message, maxAsked), visible.Text(target.host), visible.Text(target.address))
	for _, note := range target.notes {
		text += "\n\nTake care: " + note + "."
	}
	options := []Option{
		{openLabel, "In the browser of the machine where eca runs"},
		{selfLabel, "The server is told that you agree"},
		{declineLabel, "The server is told that you do not want to"},
	}
	for {
		answer, cancelled, err := asker.Ask(ctx, Question{ChatID: call.ChatID, CallID: call.CallID, Text: text, Options: options})
		switch {
		case err != nil || cancelled:
			return "cancel", err
		case answer == selfLabel:
			return "accept", nil
		case answer != openLabel:
			return "decline", nil
		}
		failed := errors.New("there is no browser")
		if m.deps.OpenURL != nil {
			failed = m.deps.OpenURL(ctx, target.address)
		}
		if failed == nil {
			return "accept", nil
		}
		text, options = fmt.Sprintf("It could not be opened (%s).\n\n", failed.Error())+text, options[1:]
	}
}

// pagesWanted returns what a server wants the user to do on pages before it carries a
// request out; nil if its error says something else.
func pagesWanted(err error) []json.RawMessage {
	var answer *answerError
	if !errors.As(err, &answer) || answer.details.Code != wire.URL_ELICITATION_REQUIRED {
		return nil
	}
	raw, err := json.Marshal(answer.details.Data)
	if err != nil {
		return nil
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(raw, &data) != nil || len(data.Elicitations) > maxIncoming {
		return nil
	}
	return data.Elicitations
}

// visit has the user open the pages that a server wants for a call, and returns when the
// server, or the user, says that they are done with.
func (c *connection) visit(ctx context.Context, call ActiveCall, wanted []json.RawMessage) error {
	if c.session.handlers[string(wire.MethodElicitationCreate)] == nil {
		return errors.New("the server wants the user to open a page first, and nobody can be asked")
	}
	ids := map[string]<-chan struct{}{}
	var hosts []string
	for _, raw := range wanted {
		var p pageRequest
		if err := json.Unmarshal(raw, &p); err != nil || p.Mode != "url" {
			return errors.New("the server wants the user to do something that eca does not know")
		}
		target, err := readPage(p.URL)
		if err != nil {
			return err
		}
		hosts = append(hosts, target.host)
		if p.ID != "" {
			done, forget := c.awaitPage(p.ID) // before somebody can be done with it
			defer forget()
			ids[p.ID] = done
		}
		result, failed := c.session.answer(ctx, string(wire.MethodElicitationCreate), raw)
		if failed != nil {
			return fmt.Errorf("the server wants the user to open a page at %s first, and the user could not be asked: %s", visible.Text(target.host), failed.Message)
		}
		var answer elicited
		if json.Unmarshal(result, &answer) != nil || answer.Action != "accept" {
			return fmt.Errorf("the server wants the user to open a page at %s first, and the user did not", visible.Text(target.host))
		}
	}
	asker := c.m.asker()
	if asker == nil {
		return errors.New("nobody could be asked whether the pages are done with")
	}
	defer call.hold()()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := make(chan struct{})
	if len(ids) == len(wanted) {
		go func() {
			for _, done := range ids {
				select {
				case <-done:
				case <-ctx.Done():
					return
				}
			}
			close(finished)
			cancel() // the question is settled
		}()
	}
	answer, cancelled, err := asker.Ask(ctx, Question{
		ChatID: call.ChatID, CallID: call.CallID,
		Text: fmt.Sprintf("When you are done at %s, the call of %s goes on.", visible.Text(strings.Join(hosts, ", ")), call.Tool),
		Options: []Option{
			{doneLabel, "The call is made again"},
			{stopLabel, "The call fails"},
		},
	})
	select {
	case <-finished:
		return nil
	default:
	}
	switch {
	case err != nil:
		return err
	case cancelled || answer != doneLabel:
		return errors.New("the user was not done with the page that the server wants")
	}
	return nil
}

// awaitPage returns a channel that is closed when the server says that the user is done with
// a page.
func (c *connection) awaitPage(id string) (done <-chan struct{}, forget func()) {
	ch := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = map[string]chan struct{}{}
	}
	c.pages[id] = ch
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pages[id] == ch {
			delete(c.pages, id)
		}
	}
}

// pageDone notes that the user is done with a page. Those that nobody waits for are ignored.
func (c *connection) pageDone(params json.RawMessage) {
	var p struct {
		ID string `json:"elicitationId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.pages[p.ID]; done != nil {
		close(done)
		delete(c.pages, p.ID)
	}
}
