package turn

import (
	"cmp"
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// Session describes a session.
type Session struct {
	chat.Meta
	Running bool
}

func infoOf(s *chat.Session) Session {
	info := Session{s.Meta(), s.Running()}
	info.ID = s.ID()
	return info
}

func checkID(id string) error {
	if id == "" {
		return Errorf(BadParams, "session_id is missing")
	}
	if !chat.ValidID(id) {
		return Errorf(BadParams, "session_id %q is not a valid session id", id)
	}
	return nil
}

// openExisting returns a session, or an error with the code NotFound.
func (s *Service) openExisting(ctx context.Context, id string) (*chat.Session, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	session, ok, err := s.host.Engine().OpenExisting(ctx, id)
	if err == nil && !ok {
		err = Errorf(NotFound, "unknown session %q", id)
	}
	return session, err
}

// Create opens the session with an id, and creates it if necessary. An empty id creates a new one.
func (s *Service) Create(ctx context.Context, id string) (Session, error) {
	if err := checkID(id); id != "" && err != nil {
		return Session{}, err
	}
	session, _, err := s.host.Engine().Open(ctx, id)
	if err != nil {
		return Session{}, err
	}
	return infoOf(session), nil
}

// Load opens an existing session.
func (s *Service) Load(ctx context.Context, id string) (Session, error) {
	session, err := s.openExisting(ctx, id)
	if err != nil {
		return Session{}, err
	}
	return infoOf(session), nil
}

// List lists sessions, the most recently changed first; limit 0 means all.
func (s *Service) List(ctx context.Context, limit int) ([]chat.Summary, error) {
	return s.host.Engine().List(ctx, chat.ByUpdated, limit)
}

// Delete deletes a session permanently.
func (s *Service) Delete(ctx context.Context, id string) error {
	if _, err := s.openExisting(ctx, id); err != nil {
		return err
	}
	return s.host.Engine().Delete(id)()
}

// History shows the session so far, in the same form as Follow, but with the user's prompts. If a
// turn was cut off because its process was killed, History shows the turn and its calls as
// interrupted.
func (s *Service) History(ctx context.Context, id string, v Viewer) (Session, error) {
	session, err := s.openExisting(ctx, id)
	if err != nil {
		return Session{}, err
	}
	fold, unfinished := transcript.New(), false
	for r, last := session.Read(1), session.Next(); ; {
		e, ok, err := r.Try(ctx)
		if err != nil {
			return Session{}, err
		}
		if !ok || e.Seq >= last {
			if unfinished && !session.Running() && !session.RunsElsewhere() {
				err = showInterrupted(v, fold)
			}
			return infoOf(session), err
		}
		if c, shown := fold.Add(e); shown {
			if turn, ok := c.Item.(transcript.Turn); ok {
				unfinished = turn.End == nil
			}
			if err := v.Show(noticeAsAnswer(c)); err != nil {
				return Session{}, err
			}
		}
	}
}

// showInterrupted shows the end that a turn would have if its process had written one.
func showInterrupted(v Viewer, fold *transcript.Fold) error {
	for _, call := range fold.Calls() {
		if call.Ended() {
			continue
		}
		call.Stage, call.Rejection = transcript.Rejected, event.ToolRejected{CallID: call.CallID, Reason: event.Interrupted}
		if err := v.Show(transcript.Change{Item: call}); err != nil {
			return err
		}
	}
	return v.Show(transcript.Change{Item: transcript.Turn{End: &event.TurnFinished{Reason: event.FinishedInterrupted}}})
}

// Cancel stops the turn of a session. running reports whether there was one.
func (s *Service) Cancel(id string) (running bool, err error) {
	if id == "" {
		return false, Errorf(BadParams, "session_id is missing")
	}
	session, ok := s.host.Engine().Lookup(id)
	if ok {
		running = session.Running()
		session.Cancel()
	}
	return running, nil
}

// Decide approves or rejects a call that waits for a decision.
func (s *Service) Decide(id, callID string, d chat.Decision) error {
	session, ok := s.host.Engine().Lookup(id)
	if !ok {
		return Errorf(NotFound, "no session %q is open", id)
	}
	session.Decide(callID, d)
	return nil
}

// Answer answers a question of the model. An empty text declines to answer.
func (s *Service) Answer(questionID, text string) error {
	if !s.pending.answer(questionID, text) {
		return Errorf(NotFound, "no question %q is waiting for an answer", questionID)
	}
	return nil
}

// Settings are changes to the settings of a session. Empty and nil fields change nothing.
type Settings struct {
	Model, Agent string
	Variant      *string
	Trust        *bool // true allows calls that would otherwise need approval
}

// Choices are the current settings of a session, including defaults, and the possible values.
type Choices struct {
	Agent    string
	Agents   []Agent
	Model    string
	Models   []string
	Trust    bool
	Variant  string
	Variants []string // of the model
}

// Agent is an agent that can be chosen.
type Agent struct {
	Description string `json:"description"`
	ID          string `json:"id"`
}

// Choices returns the choices of a session. An empty id returns those of the next new session.
func (s *Service) Choices(ctx context.Context, id string) (Session, Choices, error) {
	var info Session
	if id != "" {
		var err error
		if info, err = s.Load(ctx, id); err != nil {
			return Session{}, Choices{}, err
		}
	}
	s.host.Extensions() // loads the agents that the user's files define
	cfg, models := s.host.Config(), s.host.ModelChoice()
	name := cfg.AgentOrDefault(info.Agent)
	model := cmp.Or(info.Model, cfg.Agents[name].DefaultModel, models.Default)
	c := Choices{
		Agent: name, Agents: []Agent{}, Model: model, Models: append([]string{}, models.IDs...), Trust: info.Trust,
		Variant: cmp.Or(info.Variant, cfg.Agents[name].Variant), Variants: []string{},
	}
	for _, n := range cfg.PrimaryAgents() {
		c.Agents = append(c.Agents, Agent{ID: n, Description: cfg.Agents[n].Description})
	}
	if variants, ok := s.host.Variants(model); ok {
		c.Variants = append(c.Variants, variants...)
	}
	return info, c, nil
}

// Set changes the settings for the next prompts of a session.
func (s *Service) Set(ctx context.Context, id string, to Settings) (Session, error) {
	session, err := s.openExisting(ctx, id)
	if err != nil {
		return Session{}, err
	}
	change, err := s.change(ctx, to)
	if err != nil {
		return Session{}, err
	}
	if _, err := session.Change(change).Wait(ctx); err != nil {
		return Session{}, err
	}
	return infoOf(session), nil
}

// change validates settings and returns a function that applies them.
func (s *Service) change(ctx context.Context, to Settings) (func(*chat.Meta), error) {
	if to.Model != "" {
		id, err := s.host.CheckModel(ctx, to.Model)
		if err != nil {
			return nil, Errorf(BadParams, "params.model: %v", err)
		}
		to.Model = id
	}
	if to.Agent != "" {
		if err := s.host.CheckAgent(to.Agent); err != nil {
			return nil, Errorf(BadParams, "params.agent: %v", err)
		}
	}
	return func(m *chat.Meta) {
		m.Model, m.Agent = cmp.Or(to.Model, m.Model), cmp.Or(to.Agent, m.Agent)
		if to.Variant != nil {
			m.Variant = *to.Variant
		}
		if to.Trust != nil {
			m.Trust = *to.Trust
		}
	}, nil
}

// SyncModels fetches the lists of models from the providers.
func (s *Service) SyncModels(ctx context.Context) {
	ctx, cancel := s.Bind(ctx)
	defer cancel()
	s.host.SyncModels(ctx)
}

// Commands lists the slash commands that a prompt may begin with.
func (s *Service) Commands() []command.Offer { return s.host.Commands() }
