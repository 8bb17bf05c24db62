package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/internal/template"
)

// initPrompt returns the prompt of /init.
func (c *Commands) initPrompt(rest string) (string, error) {
	text := strings.TrimSpace(c.deps.Config().Prompts.Init)
	if text == "" {
		return "", errors.New("the configuration has no prompt for this: prompts.init is empty")
	}
	text, _ = template.Text(text, chat.PromptVars(c.deps.Machine, c.deps.Config().ToolCall.ShellCommand.Path, c.deps.Roots()))
	if rest != "" {
		text += "\n\nAdditional instructions from the user: " + rest
	}
	return text, nil
}

// syncSystemPrompt unpins the chat's system prompt (eca-features.md 10).
func (c *Commands) syncSystemPrompt(ctx context.Context, in input) (string, error) {
	if _, err := in.session.UnpinSystemPrompt().Wait(ctx); err != nil {
		return "", err
	}
	return "The next prompt will be sent with a new system prompt.", nil
}

// model lists the models or chooses one.
func (c *Commands) model(ctx context.Context, in input) (string, error) {
	choice, current := c.deps.Choice(), in.session.Meta().Model
	if in.arg() == "" {
		var b strings.Builder
		b.WriteString("`/model provider/model` chooses one of these for this chat:\n\n")
		for _, id := range choice.IDs {
			var marks []string
			if id == current {
				marks = append(marks, "current")
			}
			if id == choice.Default {
				marks = append(marks, "default")
			}
			fmt.Fprintf(&b, "- `%s`", id)
			if marks != nil {
				fmt.Fprintf(&b, " (%s)", strings.Join(marks, ", "))
			}
			b.WriteString("\n")
		}
		return b.String(), nil
	}
	m, err := c.deps.Models.Resolve(in.arg(), current)
	if err != nil {
		return "", err
	}
	if !slices.Contains(choice.IDs, m.ID) {
		return "", fmt.Errorf("%s; /model lists the available models%s", unlistedModel(in.arg(), m.ID), similarModels(choice.IDs, m.ID))
	}
	_, err = in.session.Change(func(meta *chat.Meta) {
		meta.Model = m.ID
		if m.Variants[meta.Variant] == nil {
			meta.Variant = ""
		}
	}).Wait(ctx)
	return "This chat uses `" + m.ID + "` from now on.", err
}

// unlistedModel says that no provider lists the model that the user typed. id is the full id that
// Resolve derived from it.
func unlistedModel(typed, id string) string {
	provider, ofProvider := strings.CutSuffix(id, "/"+typed)
	named, _, full := strings.Cut(typed, "/")
	switch {
	case !ofProvider:
		return "no provider lists the model " + id
	case full:
		return fmt.Sprintf("there is no provider %s, and %s has no model %s", named, provider, typed)
	}
	return fmt.Sprintf("%s has no model %s", provider, typed)
}

// similarModels lists up to five models whose names contain that of the given model.
func similarModels(ids []string, id string) string {
	name := id[strings.LastIndex(id, "/")+1:]
	var out []string
	for _, known := range ids {
		if len(out) < 5 && name != "" && strings.Contains(strings.ToLower(known), strings.ToLower(name)) {
			out = append(out, known)
		}
	}
	if out == nil {
		return ""
	}
	return ", for example " + strings.Join(out, ", ")
}

// rename gives the chat a title.
func (c *Commands) rename(ctx context.Context, in input) (string, error) {
	title := strings.Join(in.args, " ")
	if strings.TrimSpace(title) == "" {
		return "", errors.New("the title is empty")
	}
	if _, err := in.session.Rename(title).Wait(ctx); err != nil {
		return "", err
	}
	return "This chat is now called **" + in.session.Meta().Title + "**.", nil
}

// pin pins or unpins the chat.
func (c *Commands) pin(ctx context.Context, in input) (string, error) {
	if in.arg() != "" && in.arg() != "off" {
		return "", fmt.Errorf("/pin accepts `off` or no argument, not %q", in.arg())
	}
	if _, err := in.session.Pin(in.arg() == "").Wait(ctx); err != nil {
		return "", err
	}
	if in.arg() == "off" {
		return "This chat is no longer pinned.", nil
	}
	return "This chat is pinned: it is kept regardless of its age. `/pin off` undoes it.", nil
}

// fork copies the chat.
func (c *Commands) fork(ctx context.Context, in input) (string, error) {
	fork, err := in.session.Fork("").Wait(ctx)
	if err == nil {
		_, err = in.session.Announce(*fork).Wait(ctx)
	}
	return "", err
}

// help lists the commands.
func (c *Commands) help(context.Context, input) (string, error) {
	var b strings.Builder
	b.WriteString("A message that begins with one of these is a command. A message that begins with a similar word is refused, and all other messages go to the model.\n\n")
	for _, o := range c.List() {
		usage := "/" + o.Name
		for _, a := range o.Arguments {
			if a.Required {
				usage += " <" + a.Name + ">"
			} else {
				usage += " [" + a.Name + "]"
			}
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", usage, o.Description)
	}
	return b.String(), nil
}

// suggestCommand returns a command that suggests the right name, if name is similar to the name of a
// command: the model could only guess. It returns false for other words and for paths, which are sent
// to the model.
func (c *Commands) suggestCommand(name string) (chat.Command, bool) {
	var names []string
	for _, o := range c.List() {
		names = append(names, o.Name)
	}
	meant := suggest.Nearest(name, names)
	if meant == "" || !isName(name) {
		return chat.Command{}, false
	}
	return c.newCommand(name, func(context.Context, *chat.Session) (string, error) {
		return "", fmt.Errorf("there is no command `/%s`; did you mean `/%s`? `/help` lists the commands", name, meant)
	}), true
}

// isName reports whether a word can be the name of a command rather than the beginning of a path.
func isName(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return r != '-' && r != '_' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// resume lists chats, or replaces this chat with a copy of another. The numbers of chats follow the
// order of their creation, so that new chats do not change them.
func (c *Commands) resume(ctx context.Context, in input) (string, error) {
	list, err := c.deps.Engine().List(ctx, chat.ByCreated, 0)
	if err != nil {
		return "", err
	}
	slices.Reverse(list)
	list = slices.DeleteFunc(list, func(s chat.Summary) bool {
		if s.ID == in.session.ID() || s.Title != "" {
			return s.ID == in.session.ID()
		}
		conversed, readErr := c.deps.Engine().HasModelPrompt(ctx, s.ID)
		return readErr == nil && !conversed
	})
	switch page := 1; in.arg() {
	case "page":
		if len(in.args) > 1 {
			if page, err = strconv.Atoi(in.args[1]); err != nil || page < 1 {
				return "", fmt.Errorf("%q is not the number of a page", in.args[1])
			}
		}
		return c.listChats(ctx, list, page)
	case "":
		return c.listChats(ctx, list, page)
	}
	if len(in.args) > 1 {
		return "", errors.New("/resume takes one chat: a number from the list, `latest`, or an id")
	}
	id, err := findChat(list, in.arg())
	if err != nil {
		return "", err
	}
	return c.adopt(ctx, in.session, id)
}

// maxListed is the number of chats on a page of the list.
const maxListed = 20

// listChats shows a page of the chats, the newest first.
func (c *Commands) listChats(ctx context.Context, list []chat.Summary, page int) (string, error) {
	if len(list) == 0 {
		return "There are no other chats in these workspace folders.", nil
	}
	var b strings.Builder
	b.WriteString("`/resume` with a number, `latest` or an id continues a copy of that chat here.\n\n")
	end := len(list) - (page-1)*maxListed
	if end <= 0 {
		return "", fmt.Errorf("there is no page %d: the list has %s", page, count((len(list)+maxListed-1)/maxListed, "page"))
	}
	first := max(end-maxListed, 0)
	for i := end - 1; i >= first; i-- {
		s := list[i]
		title, err := c.deps.Engine().DisplayTitle(ctx, s.ID, s.Title)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "- %d. **%s**, %s, %s, `%s`", i+1, title, age(c.deps.Now().Sub(s.Updated)), count(s.Messages, "message"), s.ID)
		flags, err := c.flags(ctx, s.ID)
		if err != nil {
			return "", err
		}
		if len(flags) > 0 {
			fmt.Fprintf(&b, ", flags: %s", strings.Join(flags, ", "))
		}
		b.WriteString("\n")
	}
	if first > 0 {
		fmt.Fprintf(&b, "\n%s: `/resume page %d`\n", count(first, "older chat"), page+1)
	}
	return b.String(), nil
}

// flags returns the texts of a chat's flags.
func (c *Commands) flags(ctx context.Context, id string) ([]string, error) {
	span, err := c.deps.Store.Window(ctx, id, chat.Window{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range span.Flags {
		events, err := c.deps.Store.Events(ctx, id, f.Seq, 1)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if b, ok := e.Body.(event.Flag); ok {
				out = append(out, strconv.Quote(b.Text))
			}
		}
	}
	return out, nil
}

// findChat returns the id of the chat for a number, "latest" or an id; list is ordered by creation.
func findChat(list []chat.Summary, selector string) (string, error) {
	if len(list) == 0 {
		return "", errors.New("there is no other chat to resume")
	}
	if selector == "latest" {
		latest := slices.MaxFunc(list, func(a, b chat.Summary) int { return a.Updated.Compare(b.Updated) })
		return latest.ID, nil
	}
	n, err := strconv.Atoi(selector)
	if err == nil && n >= 1 && n <= len(list) {
		return list[n-1].ID, nil
	}
	if i := slices.IndexFunc(list, func(s chat.Summary) bool { return s.ID == selector }); i >= 0 {
		return list[i].ID, nil
	}
	return "", fmt.Errorf("there is no chat %s; /resume lists those that can be resumed", selector)
}

// adopt replaces this chat with a copy of another. The messages of this chat, if they are a
// conversation with a model, are saved in a fork.
func (c *Commands) adopt(ctx context.Context, s *chat.Session, id string) (string, error) {
	events, err := transcript(ctx, s)
	if err != nil {
		return "", err
	}
	savedNote := ""
	if slices.ContainsFunc(events, isModelPrompt) {
		fork, err := s.Fork("").Wait(ctx)
		if err != nil {
			return "", fmt.Errorf("the messages of this chat could not be saved, so nothing was resumed: %w", err)
		}
		savedNote = " The earlier messages of this chat are saved as **" + fork.Title + "**."
	}
	if _, err := s.Adopt(ctx, id).Wait(ctx); err != nil {
		err = fmt.Errorf("cannot resume the chat %s; this chat is unchanged: %w", id, err)
		if savedNote != "" {
			err = fmt.Errorf("%w.%s", err, savedNote)
		}
		return "", err
	}
	title, err := c.deps.Engine().DisplayTitle(ctx, id, s.Meta().Title)
	if err != nil {
		return "", err
	}
	return "Resumed **" + title + "**: this is a copy; the other chat is unchanged." + savedNote, nil
}

// isModelPrompt reports whether an event is a prompt to a model.
func isModelPrompt(e event.Event) bool {
	m, ok := e.Body.(event.UserMessage)
	return ok && (!m.Command || m.Prompt != "")
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute") + " ago"
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour") + " ago"
	}
	return count(int(d/(24*time.Hour)), "day") + " ago"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
