package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// halfStore has a chat, but can not find calls in it, nor read any other.
type halfStore struct {
	chat.Store
	events []event.Event
}

var errAway = errors.New("the disk is away")

func (s *halfStore) Meta(_ context.Context, id string) (chat.Meta, event.Seq, bool, error) {
	return chat.Meta{ID: id}, event.Seq(len(s.events)), true, nil
}

func (s *halfStore) Events(_ context.Context, id string, from event.Seq, limit int) ([]event.Event, error) {
	if id != "c" {
		return nil, errAway
	}
	rest := s.events[min(int(from)-1, len(s.events)):]
	return rest[:min(limit, len(rest))], nil
}

func (*halfStore) Find(context.Context, string, string, bool) (chat.Cursor, bool, error) {
	return chat.Cursor{}, false, errAway
}

func (*halfStore) Sync(context.Context) error { return nil }

// What can not be read of a call costs a replay only that, and the log says what is missing.
func TestReplayTellsWhatIsMissing(t *testing.T) {
	sub := &event.Details{Subagent: &event.Subagent{ChatID: "subagent-1"}}
	if !chat.IsSubagent(sub.Subagent.ChatID) {
		t.Fatal(sub.Subagent.ChatID)
	}
	s := &halfStore{}
	for _, b := range []event.Body{
		event.ToolFinished{CallID: "older"},
		event.ToolProposed{Tool: event.Tool{CallID: "spawn"}},
		event.ToolJudged{Tool: event.Tool{CallID: "spawn"}, Details: sub},
		event.ToolStarted{CallID: "spawn"},
		event.ToolFinished{CallID: "spawn"},
		event.TextDelta{Text: "Done."},
	} {
		s.events = append(s.events, event.Event{Seq: event.Seq(len(s.events) + 1), Turn: "t", Body: b})
	}
	cfg := config.Load(config.Inputs{Getenv: func(string) string { return "" }, ConfigHome: t.TempDir()})
	e := chat.New(chat.Deps{Store: s, Config: func() *config.Config { return cfg.Config }, Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	session, _, err := e.Open(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	text := ""
	span := chat.Span{From: 1, To: event.Seq(len(s.events) + 1)}
	_, err = replay(t.Context(), session, span, newMapper("c", cfg), slog.New(slog.NewTextHandler(&log, nil)), func(list []notification) {
		for _, n := range list {
			if c, ok := n.Params.(protocol.ContentReceived); ok {
				if said, ok := c.Content.(protocol.TextContent); ok {
					text += said.Text
				}
			}
		}
	})
	if err != nil || text != "Done." {
		t.Errorf("%q %v", text, err)
	}
	for _, want := range []string{`msg="how a tool call began can not be shown" chat=c call=older err="the disk is away"`, `msg="what a subagent did can not be shown" chat=c call=spawn err="the chat can not be read: the disk is away"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in %s", want, log.String())
		}
	}
}
