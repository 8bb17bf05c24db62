package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// The format of exported chats; docs/storage.md describes it.
const (
	formatName    = "eca-chat"
	formatVersion = 1
)

// document is an exported chat.
type document struct {
	header
	Events []entry `json:"events"`
}

type header struct {
	Format     string   `json:"format"`
	Version    int      `json:"version"`
	ECA        string   `json:"eca"` // version of the eca that wrote it
	ExportedAt int64    `json:"exportedAt"`
	Chat       chatInfo `json:"chat"`
}

// chatInfo is the metadata of the chat.
type chatInfo struct {
	ID        string   `json:"id"`
	Title     string   `json:"title,omitempty"`
	Named     bool     `json:"named,omitempty"`
	CreatedAt int64    `json:"createdAt"` // milliseconds since 1970, like all times
	UpdatedAt int64    `json:"updatedAt"`
	Model     string   `json:"model,omitempty"`
	Agent     string   `json:"agent,omitempty"`
	Variant   string   `json:"variant,omitempty"`
	Roots     []string `json:"roots"`
}

// entry is one event, in the form of the store.
type entry struct {
	Seq     event.Seq       `json:"seq"`
	Turn    string          `json:"turn,omitempty"`
	At      int64           `json:"at"`
	Kind    event.Kind      `json:"kind"`
	Version int             `json:"version"`
	Body    json.RawMessage `json:"body"`
}

// transcript returns the events of a chat so far, with the pieces of each delta joined.
func transcript(ctx context.Context, s *chat.Session) ([]event.Event, error) {
	var out []event.Event
	end, r := s.Next(), s.Read(1)
	for r.Position() < end {
		e, ok, err := r.Try(ctx)
		if err != nil {
			return nil, err
		}
		if !ok || e.Seq >= end {
			break
		}
		if event.Volatile(e.Body) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Seq == e.Seq {
			out[n-1].Body = event.JoinDeltas(out[n-1].Body, e.Body)
			continue
		}
		out = append(out, e)
	}
	return out, ctx.Err()
}

// header returns the header for a chat.
func (c *Commands) header(meta chat.Meta) header {
	return header{
		Format: formatName, Version: formatVersion, ECA: c.deps.Version, ExportedAt: c.deps.Now().UnixMilli(),
		Chat: chatInfo{
			ID: meta.ID, Title: meta.Title, Named: meta.Named, CreatedAt: meta.Created.UnixMilli(), UpdatedAt: meta.Updated.UnixMilli(),
			Model: meta.Model, Agent: meta.Agent, Variant: meta.Variant, Roots: meta.Roots,
		},
	}
}

// encode returns the entry of an event as JSON, without secrets.
func encode(e event.Event, clean *redact.Redactor) ([]byte, error) {
	version, raw, err := event.EncodeBody(e.Body)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	if raw, err = cleanJSON(raw, clean); err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return marshal(entry{Seq: e.Seq, Turn: e.Turn, At: e.Time.UnixMilli(), Kind: event.KindOf(e.Body), Version: version, Body: raw})
}

// cleanJSON removes secrets from a JSON value: those that clean finds, and strings in fields with a
// name such as password.
func cleanJSON(raw []byte, clean *redact.Redactor) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return marshal(redact.Value(v, clean.String))
}

// marshal is json.Marshal without escaping of <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// maxImport is the maximum size of an imported file, in bytes.
const maxImport = 256 << 20

// maxSeq is greater than any valid sequence number.
const maxSeq = 1 << 62

// parseDocument reads an exported chat. It returns its metadata and its valid events, with Begins set.
func parseDocument(r io.Reader) (chatInfo, []event.Event, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxImport+1))
	if err != nil {
		return chatInfo{}, nil, err
	}
	if len(data) > maxImport {
		return chatInfo{}, nil, fmt.Errorf("it is larger than %d MB", maxImport>>20)
	}
	if isEDN(data) {
		return chatInfo{}, nil, errors.New("it is an EDN file of the reference server, which eca cannot import; only JSON files that eca's /export wrote can be imported")
	}
	var head struct {
		Format  string
		Version int
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return chatInfo{}, nil, fmt.Errorf("it is not JSON: %w", err)
	}
	switch {
	case head.Format != formatName:
		return chatInfo{}, nil, errors.New("it was not written by /export")
	case head.Version != formatVersion:
		return chatInfo{}, nil, fmt.Errorf("it has version %d of the format, and this eca reads version %d", head.Version, formatVersion)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return chatInfo{}, nil, fmt.Errorf("it is damaged: %w", err)
	}
	events, err := decode(d.Events)
	return d.Chat, events, err
}

// isEDN reports whether data is in the format of the reference server.
func isEDN(data []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimSpace(rest), []byte(":"))
}

// decode validates and decodes events. It leaves out events about files and the system prompt: an
// imported chat must not undo changes to files, or give instructions to a model.
func decode(entries []entry) ([]event.Event, error) {
	dec := event.NewDecoder()
	var out []event.Event
	var last event.Seq
	var previous event.Kind
	messageStarts := map[event.Seq]bool{}
	for i, en := range entries {
		if en.Seq <= last || en.Seq >= maxSeq {
			return nil, fmt.Errorf("it is damaged: event %d has the number %d after %d", i+1, en.Seq, last)
		}
		last = en.Seq
		switch en.Kind {
		case event.KindOf(event.FileChanged{}), event.KindOf(event.UndoPoint{}), event.KindOf(event.Progress{}), event.KindOf(event.SystemPrompt{}):
			continue
		}
		if len(en.Body) == 0 || en.Body[0] != '{' {
			return nil, fmt.Errorf("it is damaged: event %d has no body", en.Seq)
		}
		body, err := dec.Body(en.Kind, en.Version, en.Body)
		if err != nil {
			return nil, fmt.Errorf("it is damaged: event %d: %w", en.Seq, err)
		}
		if f, ok := body.(event.Flag); ok && !messageStarts[f.After] {
			continue // the message that it follows is missing
		}
		if n, ok := body.(event.Notice); ok {
			n.Chat = "" // an id from another installation
			body = n
		}
		e := event.Event{Seq: en.Seq, Turn: strings.ToValidUTF8(en.Turn, "�"), Time: time.UnixMilli(en.At).UTC(), Body: body, Begins: event.Begins(previous, body)}
		if !event.InterleavesText(body) {
			previous = event.KindOf(body)
		}
		if _, flag := body.(event.Flag); e.Begins && !flag {
			messageStarts[e.Seq] = true
		}
		out = append(out, e)
	}
	return out, nil
}
