package server

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// selections implements the methods that let users select agents and models.
type selections struct {
	*connection
	host     Host
	settings *settings
	views    *views
}

// selectedChat returns the chat with this id. ok is false if the chat does not exist yet, if it belongs to
// a subagent, or if the store cannot be read. The selection then applies to new chats of the connection.
func (s *selections) selectedChat(ctx context.Context, id string) (session *chat.Session, ok bool, err error) {
	session, ok, err = s.host.Engine().OpenExisting(ctx, id)
	if err != nil && ctx.Err() == nil && !errors.Is(err, chat.ErrClosed) {
		s.log.Warn("cannot find out whether a chat exists; the selection applies to new chats", "chat", id, "err", err)
		return nil, false, nil
	}
	return session, ok, err
}

// ChatSelectedAgentChanged implements protocol.Server.
func (s *selections) ChatSelectedAgentChanged(ctx context.Context, p protocol.SelectedAgentParams) error {
	agent, found := s.host.Config().FindAgent(p.Name())
	if !found {
		s.background(func() {
			s.notify(s.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: s.host.Config().Substitution(p.Name(), agent, nil)})
		})
	}
	session, known, err := s.selectedChat(ctx, string(p.ChatID))
	if err != nil {
		return err
	}
	if !known {
		s.settings.selectAgent(agent, true)
		s.background(func() {
			s.settings.pushConfig(s.ctx, false)
			s.settings.pushTools(s.ctx, true)
			s.settings.pushMCP(s.ctx, true)
		})
		return nil
	}
	changed := session.Change(func(m *chat.Meta) { m.Agent = agent })
	s.background(func() {
		if _, err := changed.Wait(s.ctx); err != nil {
			s.log.Warn("cannot change the agent of a chat", "chat", session.ID(), "err", err)
			return
		}
		meta := session.Meta()
		sel := s.views.selection(meta)
		update := protocol.ChatConfig{Variants: &sel.Variants, SelectVariant: variantJSON(sel.Variant)}
		if sel.Model != nil {
			update.SelectModel = *sel.Model
		}
		s.notify(s.ctx, "config/updated", protocol.ConfigUpdated{ChatID: session.ID(), Chat: &update})
		s.news.Announce(chat.ChatChanged, session.ID())
		s.settings.selectAgent(meta.Agent, false)
		s.settings.pushTools(s.ctx, true)
		s.settings.pushMCP(s.ctx, true)
	})
	return nil
}

// ChatSelectedBehaviorChanged implements protocol.Server: the name of chat/selectedAgentChanged in the first
// published version of the protocol.
func (s *selections) ChatSelectedBehaviorChanged(ctx context.Context, p protocol.SelectedAgentParams) error {
	return s.ChatSelectedAgentChanged(ctx, p)
}

// ChatSelectedModelChanged implements protocol.Server.
func (s *selections) ChatSelectedModelChanged(ctx context.Context, p protocol.SelectedModelParams) error {
	if p.Model == "" {
		return nil
	}
	session, known, err := s.selectedChat(ctx, string(p.ChatID))
	if err != nil {
		return err
	}
	variants, usable := s.host.Variants(string(p.Model))
	update := protocol.ChatConfig{Variants: pointerToList(variants), SelectVariant: variantJSON(nil)}
	variant := string(p.Variant)
	if !slices.Contains(variants, variant) {
		variant = ""
	}
	if variant != "" {
		update.SelectVariant = variantJSON(&variant)
	}
	if known {
		changed := session.Change(func(m *chat.Meta) { m.Model, m.Variant = string(p.Model), variant })
		s.background(func() {
			if _, err := changed.Wait(s.ctx); err != nil {
				s.log.Warn("cannot change the model of a chat", "chat", session.ID(), "err", err)
				return
			}
			s.notify(s.ctx, "config/updated", protocol.ConfigUpdated{ChatID: session.ID(), Chat: &update})
			s.news.Announce(chat.ChatChanged, session.ID())
		})
		return nil
	}
	// The chat does not exist yet, and its first prompt will name its model. If the client has already
	// given the chat an id, the model is not sent in the general configuration, because other chats would
	// adopt it.
	sel := pickedModel{defaultModel: s.host.ModelChoice().Default, variants: update.Variants, variant: update.SelectVariant}
	if p.ChatID == "" && usable {
		sel.model = string(p.Model)
	}
	s.settings.selectModel(sel)
	s.background(func() { s.settings.pushConfig(s.ctx, false) })
	return nil
}
