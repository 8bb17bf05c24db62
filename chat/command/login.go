package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// Logins logs in to providers. Errors about invalid input of the user are *auth.InvalidError.
type Logins interface {
	Providers() []llm.Provider
	Login(ctx context.Context, provider, method string) (auth.Step, error)
	LoginInput(ctx context.Context, provider string, values map[string]string) (notice string, err error)
	// CancelLogin ends a login that waits in the background.
	CancelLogin(provider string)
	// LoginDone notifies clients of the changes after a login.
	LoginDone(provider string)
}

// loginState is the state of a login in a chat.
type loginState int

// States, in the order in which they are entered; some may be skipped.
const (
	loginBegun loginState = iota
	choosingProvider
	choosingMethod
	entering // the user enters values, one per prompt
	waiting  // the user logs in elsewhere, for example in a browser, and may paste the resulting URL or code
)

// loginDialog is one /login (eca-protocol.md 8.8).
type loginDialog struct {
	c        *Commands
	state    loginState
	choices  []ask.Option // numbered from 1 for the user; the labels are provider or method names
	provider string
	step     auth.Step
	values   map[string]string // entered values, by the keys of fields
}

func (c *Commands) login() chat.Dialog { return &loginDialog{c: c} }

// Secret implements chat.Dialog. An entered value is secret if its field is, and so is pasted input.
func (l *loginDialog) Secret() bool {
	switch l.state {
	case entering:
		return l.nextField().Secret
	case waiting:
		return len(l.step.Fields) > 0
	}
	return false
}

// Close implements chat.Dialog.
func (l *loginDialog) Close() {
	if l.state == waiting {
		l.c.deps.Logins.CancelLogin(l.provider)
	}
}

// Next implements chat.Dialog.
func (l *loginDialog) Next(ctx context.Context, s *chat.Session, text string, say func(string)) (open bool, err error) {
	clean := l.c.redactor()
	sayRedacted := func(text string) { say("\n" + clean.String(text) + "\n") }
	text = strings.TrimSpace(text)
	if l.state != loginBegun && strings.EqualFold(text, "cancel") {
		sayRedacted("The login is cancelled.")
		return false, nil
	}
	switch l.state {
	case loginBegun:
		if text != "" {
			return l.beginLogin(ctx, s, text, sayRedacted)
		}
		return l.offerProviders(ctx, s, sayRedacted)
	case choosingProvider:
		return l.beginLogin(ctx, s, l.resolveChoice(text), sayRedacted)
	case choosingMethod:
		return l.beginMethod(ctx, l.resolveChoice(text), sayRedacted)
	case entering:
		l.values[l.nextField().Key] = text
		return l.askNextValue(ctx, sayRedacted)
	}
	if len(l.step.Fields) == 0 {
		sayRedacted("The login is not finished yet. `cancel` ends it.")
		return l.wait(ctx, sayRedacted)
	}
	notice, err := l.c.deps.Logins.LoginInput(ctx, l.provider, map[string]string{l.step.Fields[0].Key: text})
	var invalid *auth.InvalidError
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case errors.As(err, &invalid):
		sayRedacted(invalid.Reason)
		return l.wait(ctx, sayRedacted)
	case err != nil:
		return false, l.loginError(err)
	}
	return l.finish(notice, sayRedacted)
}

// offerProviders asks the user to choose a provider.
func (l *loginDialog) offerProviders(ctx context.Context, s *chat.Session, say func(string)) (bool, error) {
	l.state, l.choices = choosingProvider, nil
	for _, p := range l.c.deps.Logins.Providers() {
		if len(p.Methods) > 0 {
			l.choices = append(l.choices, ask.Option{Label: p.ID, Description: string(p.Auth.State)})
		}
	}
	if len(l.choices) == 0 {
		say("No provider in the configuration needs a login.")
		return false, nil
	}
	hint := "Answer with its number or name, or `cancel`.\n\n" + l.formatChoices() + "\n" + unsupportedLogins
	return l.choose(ctx, s, "Which provider do you want to log in to?", hint, say, func(answer string) (bool, error) {
		return l.beginLogin(ctx, s, answer, say)
	})
}

// choose asks the user a question through the client. If the client does not support questions, it
// shows the question as text, with a hint how to answer it, and the next prompt is the answer.
func (l *loginDialog) choose(ctx context.Context, s *chat.Session, question, hint string, say func(string), chosen func(answer string) (bool, error)) (bool, error) {
	answer, cancelled := l.askClient(ctx, s, question)
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case cancelled:
		say("The login is cancelled.")
		return false, nil
	case answer != "":
		return chosen(answer)
	}
	say(question + " " + hint)
	return true, nil
}

// unsupportedLogins is shown with the choice of providers. The alternatives are shown once a provider is
// chosen.
const unsupportedLogins = "Subscriptions of ChatGPT and Claude cannot be used, and GitHub Copilot only with your own OAuth app: the vendors' logins are for other programs, and eca does not pretend to be one. Choose the provider to see the alternatives.\n"

// beginLogin begins the login, or asks for the method.
func (l *loginDialog) beginLogin(ctx context.Context, s *chat.Session, name string, say func(string)) (bool, error) {
	step, err := l.c.deps.Logins.Login(ctx, name, "")
	if open, failed := l.showChoiceError(ctx, err, say); failed {
		return open, nil
	}
	l.provider = name
	if step.Action != auth.ActionChoose {
		return l.beginStep(ctx, step, say)
	}
	l.state, l.choices = choosingMethod, nil
	for _, m := range step.Methods {
		l.choices = append(l.choices, ask.Option{Label: m.Key, Description: m.Label})
	}
	hint := "Answer with a number or a name, or `cancel`.\n\n" + l.formatChoices()
	if step.Message != "" {
		hint += "\n" + step.Message + "\n"
	}
	return l.choose(ctx, s, "How do you want to log in to "+name+"?", hint, say, func(answer string) (bool, error) {
		return l.beginMethod(ctx, answer, say)
	})
}

func (l *loginDialog) beginMethod(ctx context.Context, method string, say func(string)) (bool, error) {
	step, err := l.c.deps.Logins.Login(ctx, l.provider, method)
	if open, failed := l.showChoiceError(ctx, err, say); failed {
		return open, nil
	}
	return l.beginStep(ctx, step, say)
}

// showChoiceError shows the error of a choice; failed is false if err is nil. The dialog stays open if
// the user can choose again.
func (l *loginDialog) showChoiceError(ctx context.Context, err error, say func(string)) (open, failed bool) {
	switch {
	case err == nil:
		return true, false
	case ctx.Err() != nil:
		return true, true
	}
	if len(l.choices) == 0 {
		say(err.Error())
		return false, true
	}
	say(err.Error() + ". Answer with a number or a name, or `cancel`.")
	return true, true
}

// beginStep begins the next step of the login.
func (l *loginDialog) beginStep(ctx context.Context, step auth.Step, say func(string)) (bool, error) {
	l.step, l.values = step, map[string]string{}
	if step.Wait == nil {
		l.state = entering
		if step.Message != "" {
			say(step.Message)
		}
		return l.askNextValue(ctx, say)
	}
	l.state = waiting
	text := step.Message + "\n\n" + step.URL + "\n"
	if step.Code != "" {
		text += "\nCode: `" + step.Code + "`\n"
	}
	say(text + "\n`cancel` ends the login.")
	return l.wait(ctx, say)
}

// nextField returns the field to enter next.
func (l *loginDialog) nextField() auth.Field {
	for _, f := range l.step.Fields {
		if _, ok := l.values[f.Key]; !ok {
			return f
		}
	}
	return auth.Field{Secret: true}
}

// askNextValue asks for the next value, or completes the login if all values are entered.
func (l *loginDialog) askNextValue(ctx context.Context, say func(string)) (bool, error) {
	if len(l.values) < len(l.step.Fields) {
		f := l.nextField()
		text := f.Label + "? (or `cancel`)"
		if f.Secret {
			text += " It is neither shown nor kept in the chat."
		}
		say(text)
		return true, nil
	}
	notice, err := l.c.deps.Logins.LoginInput(ctx, l.provider, l.values)
	var invalid *auth.InvalidError
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case errors.As(err, &invalid):
		l.values = map[string]string{}
		say(invalid.Reason)
		return l.askNextValue(ctx, say)
	case err != nil:
		return false, l.loginError(err)
	}
	return l.finish(notice, say)
}

// wait waits until the user has logged in elsewhere.
func (l *loginDialog) wait(ctx context.Context, say func(string)) (bool, error) {
	notice, err := l.step.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case errors.Is(err, auth.ErrAnswered):
		return l.finish("", say)
	case err != nil:
		return false, l.loginError(err)
	}
	return l.finish(notice, say)
}

// loginError returns the error for a login that failed.
func (l *loginDialog) loginError(err error) error {
	return errors.New(l.c.redactor().String("The login failed: " + err.Error()))
}

func (l *loginDialog) finish(notice string, say func(string)) (bool, error) {
	text := "You are logged in to " + l.provider + "."
	if notice != "" {
		text += "\n\n" + notice
	}
	say(text)
	l.c.deps.Logins.LoginDone(l.provider)
	return false, nil
}

// questionTime is how long a question in the client stays open.
const questionTime = 5 * time.Minute

// askClient asks the user through the client. It returns an empty answer, without cancelled, if the client
// does not support questions or the user did not answer in time.
func (l *loginDialog) askClient(ctx context.Context, s *chat.Session, question string) (answer string, cancelled bool) {
	client := l.c.deps.Ask()
	if client == nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	got, err := client.Ask(ctx, ask.Question{ChatID: s.ID(), Text: question, Options: l.choices})
	switch {
	case err != nil:
		return "", false
	case got.Cancelled:
		return "", true
	}
	return got.Text, false
}

// resolveChoice returns the label of the choice with a number or name; other text is returned unchanged.
func (l *loginDialog) resolveChoice(text string) string {
	if n, err := strconv.Atoi(strings.TrimSuffix(text, ".")); err == nil && n >= 1 && n <= len(l.choices) {
		return l.choices[n-1].Label
	}
	if i := slices.IndexFunc(l.choices, func(o ask.Option) bool { return strings.EqualFold(o.Label, text) }); i >= 0 {
		return l.choices[i].Label
	}
	return text
}

func (l *loginDialog) formatChoices() string {
	var b strings.Builder
	for i, o := range l.choices {
		fmt.Fprintf(&b, "%d. %s (%s)\n", i+1, o.Label, o.Description)
	}
	return b.String()
}
