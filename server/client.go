package server

import (
	"reflect"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// client is clientInfo.name in lower case. What clients are sent depends on it only where a
// client cannot read, or would misread, what all others get.
type client string

const (
	clientVSCode client = "vscode"
	clientEmacs  client = "emacs"
	clientCLI    client = "eca-cli"
	clientNeovim client = "neovim"
)

// client returns who is connected.
func (s *Server) client() client {
	if c := s.connected.Load(); c != nil {
		return *c
	}
	return ""
}

// hasPage says whether the client shows a page that comes and goes: it keeps nothing, sends
// chat/list when it is opened, and has one switch for trust in all chats.
func (c client) hasPage() bool { return c == clientVSCode }

// config returns what a client is sent of the configuration: all of it, unless it keeps what
// it knows and what is repeated does harm there. news is what the client does not know.
func (c client) config(all, news protocol.ChatConfig) protocol.ChatConfig {
	switch c {
	case clientEmacs: // applies what is selected to every chat, also to those with a choice of their own
		all.SelectModel, all.SelectAgent, all.SelectBehavior = news.SelectModel, news.SelectAgent, news.SelectBehavior
		all.Variants, all.SelectVariant, all.SelectTrust = news.Variants, news.SelectVariant, news.SelectTrust
	case clientCLI: // adds the text to the chat each time
		all.WelcomeMessage = news.WelcomeMessage
	}
	return all
}

// details returns what a client can read of the details of a call, nil if it is nothing.
func (c client) details(d protocol.Details) protocol.Details {
	if _, change := d.(protocol.FileChangeDetails); c == clientNeovim && !change {
		return nil // it takes all details for a diff, and then the call can neither be approved nor rejected
	}
	return d
}

// difference returns the fields of now that differ from before. That one is empty now can
// not be told: an absent key means unchanged.
func difference(before, now protocol.ChatConfig) (news protocol.ChatConfig, changed bool) {
	b, n, out := reflect.ValueOf(before), reflect.ValueOf(now), reflect.ValueOf(&news).Elem()
	for i := range n.NumField() {
		if !n.Field(i).IsZero() && !reflect.DeepEqual(b.Field(i).Interface(), n.Field(i).Interface()) {
			out.Field(i).Set(n.Field(i))
			changed = true
		}
	}
	return news, changed
}
