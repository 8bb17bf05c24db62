package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/store"
)

// minChatPrefix is the minimum length of a prefix that can stand for a chat id.
const minChatPrefix = 4

// errUnknownChat means that no chat has the given id or prefix.
var errUnknownChat = errors.New("chat not found")

// chatNamed returns the id of the chat that name identifies by its id or a prefix of it. An exact
// match wins. An ambiguous prefix is an error.
func chatNamed(ctx context.Context, s *store.Store, name string) (string, error) {
	_, _, found, err := s.Meta(ctx, name)
	if err != nil || found {
		return name, err
	}
	var matches []store.Chat
	if len(name) >= minChatPrefix {
		list, err := s.Chats(ctx, nil)
		if err != nil {
			return "", err
		}
		for _, c := range list {
			if strings.HasPrefix(c.ID, name) {
				matches = append(matches, c)
			}
		}
	}
	switch len(matches) {
	case 0:
		return "", fmt.Errorf("%w: %s%s; `eca chats list` lists them", errUnknownChat, name, shortPrefix(name))
	case 1:
		return matches[0].ID, nil
	}
	var b strings.Builder
	for _, c := range matches {
		fmt.Fprintf(&b, "\n  %s  %s", printable(c.ID), printable(c.Title))
	}
	return "", fmt.Errorf("%s is the beginning of several chats; use more characters of the id:%s", name, b.String())
}

// shortPrefix says that name is too short for the beginning of an id, if it is.
func shortPrefix(name string) string {
	if len(name) >= minChatPrefix {
		return ""
	}
	return fmt.Sprintf("; the beginning of an id needs at least %d characters", minChatPrefix)
}

// chatsNamed calls chatNamed for each name. It returns the distinct ids that it found, and the errors
// for the other names.
func chatsNamed(ctx context.Context, names []string) (ids []string, failed error) {
	seen := map[string]bool{}
	err := withStore(func(s *store.Store) error {
		for _, name := range names {
			id, err := chatNamed(ctx, s, name)
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
