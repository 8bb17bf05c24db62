package server

import (
	"reflect"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// client is clientInfo.name in lower case. Messages differ from client to client only where one
// client cannot read, or would misread, the message that all others get.
type client string

const (
	clientVSCode client = "vscode"
	clientEmacs  client = "emacs"
	clientCLI    client = "eca-cli"
	clientNeovim client = "neovim"
)

// client returns the connected client.
func (c *connection) client() client {
	if name := c.name.Load(); name != nil {
		return *name
	}
	return ""
}

// hasPage reports whether the client shows a page that can be closed and reopened. Such a client
// keeps no state, sends chat/list when the page is opened, and has one trust switch for all chats.
func (c client) hasPage() bool { return c == clientVSCode }

// config returns the configuration to send to a client: all fields. Fields that this client must not get
// twice are included only if they have changed. changes contains the changed fields.
func (c client) config(all, changes protocol.ChatConfig) protocol.ChatConfig {
	switch c {
	case clientEmacs: // applies a selection to every chat, even to chats with their own selection
		all.SelectModel, all.SelectAgent, all.SelectBehavior = changes.SelectModel, changes.SelectAgent, changes.SelectBehavior
		all.Variants, all.SelectVariant, all.SelectTrust = changes.Variants, changes.SelectVariant, changes.SelectTrust
	case clientCLI: // adds the text to the chat each time
		all.WelcomeMessage = changes.WelcomeMessage
	}
	return all
}

// details returns the details of a call that a client can read, or nil.
func (c client) details(d protocol.Details) protocol.Details {
	if _, change := d.(protocol.FileChangeDetails); c == clientNeovim && !change {
		return nil // this client treats all details as a diff, and then cannot approve or reject the call
	}
	return d
}

// changedFields returns the fields of now that differ from before. It cannot express that a field has
// become empty: an absent key means unchanged.
func changedFields(before, now protocol.ChatConfig) (changes protocol.ChatConfig, changed bool) {
	b, n, out := reflect.ValueOf(before), reflect.ValueOf(now), reflect.ValueOf(&changes).Elem()
	for i := range n.NumField() {
		if !n.Field(i).IsZero() && !reflect.DeepEqual(b.Field(i).Interface(), n.Field(i).Interface()) {
			out.Field(i).Set(n.Field(i))
			changed = true
		}
	}
	return changes, changed
}
