package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/workspace"
)

// export writes the chat, without the turn of this command, to a file.
func (c *Commands) export(ctx context.Context, in input) (string, error) {
	events, err := transcript(ctx, in.session)
	if err != nil {
		return "", err
	}
	for i := len(events) - 1; i >= 0; i-- {
		if m, ok := events[i].Body.(event.UserMessage); ok && !m.Steer {
			events = events[:i]
			break
		}
	}
	if len(events) == 0 {
		return "", errors.New("there is nothing to export in this chat yet")
	}
	clean := c.redactor()
	meta := in.session.Meta()
	path, err := c.write(in.arg(), "eca-chat-"+fileName(meta), ".json", func(f *os.File) error {
		w := bufio.NewWriter(f)
		err := writeDocument(w, c.header(meta), events, clean)
		return errors.Join(err, w.Flush())
	})
	if err != nil {
		return "", err
	}
	return "This chat is in `" + path + "`, with known secrets removed. `/import` reads it.", nil
}

// Export writes a stored chat in the format of /export.
func (c *Commands) Export(ctx context.Context, meta chat.Meta, w io.Writer) error {
	const page = 512
	var events []event.Event
	for from := event.Seq(1); ; from = events[len(events)-1].Seq + 1 {
		more, err := c.deps.Store.Events(ctx, meta.ID, from, page)
		if err != nil {
			return err
		}
		events = append(events, more...)
		if len(more) < page {
			break
		}
	}
	out := bufio.NewWriter(w)
	err := writeDocument(out, c.header(meta), events, c.redactor())
	return errors.Join(err, out.Flush())
}

// writeDocument writes a document, one line for each event.
func writeDocument(w io.Writer, h header, events []event.Event, clean *redact.Redactor) error {
	head, err := marshal(h)
	if err == nil {
		head, err = cleanJSON(head, clean)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s,\n\"events\":[", head[:len(head)-1]); err != nil {
		return err
	}
	for i, e := range events {
		line, err := encode(e, clean)
		if err != nil {
			return err
		}
		comma := ","
		if i == 0 {
			comma = ""
		}
		if _, err := fmt.Fprintf(w, "%s\n%s", comma, line); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

// debugChat writes all events to a file, one JSON object per line.
func (c *Commands) debugChat(ctx context.Context, in input) (string, error) {
	events, err := transcript(ctx, in.session)
	if err != nil {
		return "", err
	}
	clean := c.redactor()
	meta := in.session.Meta()
	path, err := c.write(in.arg(), "eca-debug-"+fileName(meta), ".jsonl", func(f *os.File) error {
		w := bufio.NewWriter(f)
		head, err := marshal(c.header(meta))
		if err == nil {
			head, err = cleanJSON(head, clean)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", head) // Flush returns any error
		for _, e := range events {
			line, err := encode(e, clean)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\n", line)
		}
		return w.Flush()
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The %s of this chat are in `%s`. Secrets that eca knows or recognises are removed; read it before you share it.",
		count(len(events), "event"), path), nil
}

// fileName returns the part of a file name that identifies the chat.
func fileName(meta chat.Meta) string {
	for _, s := range []string{meta.Title, meta.ID} {
		if s = slug(s); s != "" {
			return s
		}
	}
	return "untitled"
}

// importChat stores a chat that was exported.
func (c *Commands) importChat(ctx context.Context, in input) (string, error) {
	path := workspace.Abs(c.deps.Roots(), in.arg())
	info, events, err := readDocument(path)
	if err != nil {
		return "", fmt.Errorf("%s cannot be imported: %w", path, err)
	}
	if len(events) == 0 {
		return "", fmt.Errorf("%s cannot be imported: there is nothing in it", path)
	}
	now := c.deps.Now().UTC()
	meta := chat.Meta{
		ID: info.ID, Created: events[0].Time, Updated: now, Title: title(info.Title), Named: info.Named,
		Model: info.Model, Agent: info.Agent, Variant: info.Variant, Roots: c.deps.Roots(),
		// Trust stays false: a file must not turn auto-approve on.
	}
	if meta.Created.After(now) {
		meta.Created = now
	}
	note := ""
	if !chat.ValidID(meta.ID) {
		meta.ID = c.deps.NewID()
	} else if known, err := c.deps.Engine().Exists(ctx, meta.ID); err != nil {
		return "", err
	} else if known {
		meta.ID = c.deps.NewID()
		note = " A chat with its id exists already, so it has a new one."
	}
	if err := c.deps.Store.Append(ctx, meta, events); err != nil {
		return "", err
	}
	messages := 0
	for _, e := range events {
		if e.Begins {
			messages++
		}
	}
	name, err := c.deps.Engine().DisplayTitle(ctx, meta.ID, meta.Title)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Imported **%s** with %s as chat `%s`.%s\n\nOpen it from your editor's list of chats, or type `/resume %s` in a new chat.",
		name, count(messages, "message"), meta.ID, note, meta.ID), nil
}

func readDocument(path string) (chatInfo, []event.Event, error) {
	f, err := safeio.Open("", path)
	if err != nil {
		return chatInfo{}, nil, safeio.Cause(err) // the caller adds the path
	}
	defer f.Close()
	return parseDocument(f)
}

// title shortens a title to one line of the length that clients show (eca-protocol.md 7.1).
func title(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const maxTitle = 40
	if r := []rune(s); len(r) > maxTitle {
		s = string(r[:maxTitle])
	}
	return s
}
