package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
)

// errUnknownChat means that no chat has the given id or prefix.
var errUnknownChat = errors.New("chat not found")

// resolveChat returns the id of the chat that name identifies by its id or a prefix of it. An exact
// match wins. An ambiguous prefix is an error.
func resolveChat(ctx context.Context, s *store.Store, name string) (string, error) {
	_, _, found, err := s.Meta(ctx, name)
	if err != nil || found {
		return name, err
	}
	list, err := s.Chats(ctx, nil)
	if err != nil {
		return "", err
	}
	ids, titles := make([]string, len(list)), map[string]string{}
	for i, c := range list {
		ids[i], titles[c.ID] = c.ID, c.Title
	}
	matches := chat.MatchID(name, ids)
	switch len(matches) {
	case 0:
		return "", fmt.Errorf("%w: %s%s; `eca chats list` lists them", errUnknownChat, name, chat.ShortID(name))
	case 1:
		return matches[0], nil
	}
	var b strings.Builder
	for _, id := range matches {
		fmt.Fprintf(&b, "\n  %s  %s", printable(id), printable(titles[id]))
	}
	return "", fmt.Errorf("%s is the beginning of several chats; use more characters of the id:%s", name, b.String())
}

// resolveChats calls resolveChat for each name. It returns the distinct ids that it found, and the errors
// for the other names.
func resolveChats(ctx context.Context, names []string) (ids []string, failed error) {
	seen := map[string]bool{}
	err := withStore(func(s *store.Store) error {
		for _, name := range names {
			id, err := resolveChat(ctx, s, name)
			failed = errors.Join(failed, err)
			if err == nil && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids, errors.Join(failed, err)
}
