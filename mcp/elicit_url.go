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

// Answers to a question about a server's page.
const (
	openLabel = "Open it"
	selfLabel = "Open it myself"
	doneLabel = "Continue"
	stopLabel = "Cancel"
)

// maxPageRounds is how often one call may ask for pages.
const maxPageRounds = 3

// pageRequest is a server's request to have the user open a page.
type pageRequest struct {
	Mode    string `json:"mode"`
	Message string `json:"message"`
	URL     string `json:"url"`
	ID      string `json:"elicitationId"`
}

// page is an address that a server wants the user to open.
type page struct {
	address  string
	host     string
	warnings []string // warnings for the user
}

// parsePage checks an address. It must be short enough to show in full, and of a kind that browsers
// open.
func parsePage(address string) (page, error) {
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
		p.warnings = append(p.warnings, "letters in the host name may look like others")
	}
	if u.User != nil {
		p.warnings = append(p.warnings, "the text before the @ is not the host")
	}
	if u.Scheme == "http" && !localhost.Is(name) {
		p.warnings = append(p.warnings, "the connection is not encrypted")
	}
	return p, nil
}

// elicitPage asks the user to open a page. eca fetches or opens nothing before the user agrees, and
// does not see what happens on the page.
func (u responder) elicitPage(ctx context.Context, asker Asker, r ServerRequest, call ActiveCall, p pageRequest) (action string, err error) {
	target, err := parsePage(p.URL)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("The MCP server `%s` asks, for the call of %s:\n\n%s\n\nIt wants you to open a page at **%s**:\n\n%s",
		r.Server, call.Tool, displayText(p.Message, maxQuestionText), visible.Text(target.host), visible.Text(target.address))
	for _, note := range target.warnings {
		text += "\n\nTake care: " + note + "."
	}
	options := []Option{
		{openLabel, "In the browser of the machine where eca runs"},
		{selfLabel, "Tell the server that you agree"},
		{declineLabel, "Tell the server that you decline"},
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
		openErr := errors.New("there is no browser")
		if u.deps.OpenURL != nil {
			openErr = u.deps.OpenURL(ctx, target.address)
		}
		if openErr == nil {
			return "accept", nil
		}
		text, options = fmt.Sprintf("It could not be opened (%s).\n\n", openErr.Error())+text, options[1:]
	}
}

// requiredPages returns the pages that the user has to visit before the server carries out a request. They
// are in the error with which the server refused the request; for other errors, requiredPages returns nil.
func requiredPages(err error) []json.RawMessage {
	var answer *answerError
	if !errors.As(err, &answer) || answer.details.Code != wire.URL_ELICITATION_REQUIRED {
		return nil
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(answer.details.Data, &data) != nil || len(data.Elicitations) > maxIncoming {
		return nil
	}
	return data.Elicitations
}

// visitPages has the user open the pages that a server requires for a call. It returns when the server
// or the user reports that the pages are done.
func (c *connection) visitPages(ctx context.Context, call ActiveCall, wanted []json.RawMessage) error {
	if c.session.handlers[string(wire.MethodElicitationCreate)] == nil {
		return errors.New("the server wants the user to open a page first, and no user is available")
	}
	ids := map[string]<-chan struct{}{}
	var hosts []string
	for _, raw := range wanted {
		var p pageRequest
		if err := json.Unmarshal(raw, &p); err != nil || p.Mode != "url" {
			return errors.New("the server wants the user to do something that eca does not support")
		}
		target, err := parsePage(p.URL)
		if err != nil {
			return err
		}
		hosts = append(hosts, target.host)
		if p.ID != "" {
			done, forget := c.awaitPage(p.ID) // before the user can complete the page
			defer forget()
			ids[p.ID] = done
		}
		result, answerErr := c.session.answer(ctx, string(wire.MethodElicitationCreate), raw)
		if answerErr != nil {
			return fmt.Errorf("the server wants the user to open a page at %s first, and the user could not be asked: %s", visible.Text(target.host), answerErr.Message)
		}
		var answer elicitResult
		if json.Unmarshal(result, &answer) != nil || answer.Action != "accept" {
			return fmt.Errorf("the server wants the user to open a page at %s first, and the user did not", visible.Text(target.host))
		}
	}
	asker := responder{c.m.deps}.asker()
	if asker == nil {
		return errors.New("no user was available to confirm that the pages are done")
	}
	defer call.pauseTimer()()
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
			cancel() // close the question
		}()
	}
	answer, cancelled, err := asker.Ask(ctx, Question{
		ChatID: call.ChatID, CallID: call.CallID,
		Text: fmt.Sprintf("When you are done at %s, the call of %s continues.", visible.Text(strings.Join(hosts, ", ")), call.Tool),
		Options: []Option{
			{doneLabel, "eca repeats the call"},
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
		return errors.New("the user did not finish the page that the server wants")
	}
	return nil
}

// awaitPage returns a channel that is closed when the server reports that the user has completed a
// page.
func (c *connection) awaitPage(id string) (done <-chan struct{}, forget func()) {
	ch := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.openPages == nil {
		c.openPages = map[string]chan struct{}{}
	}
	c.openPages[id] = ch
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.openPages[id] == ch {
			delete(c.openPages, id)
		}
	}
}

// handlePageDone records that the user has completed a page. It ignores pages that no call waits for.
func (c *connection) handlePageDone(params json.RawMessage) {
	var p struct {
		ID string `json:"elicitationId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.openPages[p.ID]; done != nil {
		close(done)
		delete(c.openPages, p.ID)
	}
}
