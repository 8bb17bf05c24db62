package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// Judge is the model that evaluations ask (ECP, llm_judge): one of OpenAI's, as in the
// reference, or provider/name for any that eca can use. It makes what it needs when it is
// first asked. Close must be called.
type Judge struct {
	Options Options
	Model   string // asked when a grader names none; empty is $ECP_LLM_JUDGE_MODEL, else gpt-4o-mini
	Network *netclient.Network
	Notify  func(text string) // gets a line about each failure and long wait; nil is fine

	mu     sync.Mutex // guards what follows
	daemon *Daemon
	broken map[string]bool // models that failed in spite of retries, and have not answered since
}

// Patience with a judge: an evaluation must neither wait for one that is broken for minutes,
// nor without a word.
const (
	judgeRetries   = 2                // of one question
	judgePatience  = 3 * time.Minute  // with one question, retries included
	brokenPatience = time.Minute      // with one question to a model that is broken
	judgeSilence   = 20 * time.Second // after which a notice says that the judge is waited for
)

// Environment variables of the judge, as in the reference, and its model without them.
const (
	judgeModelVariable       = "ECP_LLM_JUDGE_MODEL"
	judgeTemperatureVariable = "ECP_LLM_JUDGE_TEMPERATURE"
	judgeModel               = "gpt-4o-mini"
	openAIURL                = "https://api.openai.com/v1"
)

// Ask implements grade.Judge.
func (j *Judge) Ask(ctx context.Context, model, system, question string) (string, error) {
	name := cmp.Or(model, j.Model, j.Options.Getenv(judgeModelVariable), judgeModel)
	m, err := j.resolve(name)
	if err != nil {
		return "", err
	}
	req := llm.Request{
		Purpose: llm.PurposeTurn, Model: m.Name, System: system, Reasoning: m.Reasoning, Headers: m.Headers,
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: question}}}},
		Extra:    llm.DeepMerge(m.Payload(""), j.extra(name)),
	}
	patience := judgePatience
	if j.isBroken(name) {
		patience = brokenPatience
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	waiting := time.AfterFunc(judgeSilence, func() { j.notify("the judge %s has not answered for %s", name, judgeSilence) })
	defer waiting.Stop()
	answer, err := j.collect(ctx, name, m.Client, req)
	var refused *llm.Error
	if errors.As(err, &refused) && refused.Kind == llm.ErrBadRequest && strings.Contains(strings.ToLower(refused.Message), "temperature") {
		req.Extra = maps.Clone(req.Extra) // what was asked is still being recorded
		delete(req.Extra, "temperature")  // some models have only one
		answer, err = j.collect(ctx, name, m.Client, req)
	}
	if err != nil && ctx.Err() != nil {
		j.setBroken(name, true)
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("model %s: %w", name, err)
	}
	return answer, nil
}

func (j *Judge) notify(format string, args ...any) {
	if j.Notify != nil {
		j.Notify(fmt.Sprintf(format, args...))
	}
}

// Close ends what was made to answer.
func (j *Judge) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.daemon != nil {
		j.daemon.Close()
		j.daemon = nil
	}
}

// resolve finds a model: a name with a provider that eca knows is eca's, else it is OpenAI's
// or of a server that speaks like it.
func (j *Judge) resolve(name string) (chat.Model, error) {
	getenv := j.Options.Getenv
	if strings.Contains(name, "/") {
		m, err := j.assembled().models.Resolve(name, "")
		if err == nil || getenv("OPENAI_BASE_URL") == "" {
			return m, err
		}
	}
	key := getenv("OPENAI_API_KEY")
	if key == "" {
		return chat.Model{}, errors.New("OPENAI_API_KEY not set in environment; another model can judge: " + judgeModelVariable + "=provider/name")
	}
	limits := llm.DefaultLimits()
	headers := map[string]string{"User-Agent": "eca", "Authorization": "Bearer " + key}
	for header, variable := range map[string]string{"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"} {
		if v := getenv(variable); v != "" {
			headers[header] = v
		}
	}
	base := strings.TrimRight(cmp.Or(getenv("OPENAI_BASE_URL"), openAIURL), "/")
	at := llm.Endpoint{
		Provider: "openai", URL: base + "/chat/completions", Headers: headers, Limits: limits, Now: time.Now,
		Client: j.Network.Client(netclient.Options{Connect: limits.Connect}),
	}
	client := llm.WithRetry(openai.NewWhole(at), llm.DefaultRetry())
	return chat.Model{Name: name, Client: j.assembled().calls.Model(client, "openai/"+name)}, nil
}

// assembled returns a daemon with the user's own configuration: that of the folder an
// evaluation runs in is part of what is evaluated.
func (j *Judge) assembled() *Daemon {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.daemon == nil {
		j.daemon = New(j.Options)
		j.daemon.Configure(nil, nil)
	}
	return j.daemon
}

// extra is what requests say beyond their texts: the temperature, if it was chosen or the
// reference would send it.
func (j *Judge) extra(name string) map[string]any {
	out := map[string]any{}
	text := j.Options.Getenv(judgeTemperatureVariable)
	t, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(t) || math.IsInf(t, 0) {
		t = 0
	}
	if !strings.Contains(name, "/") {
		return map[string]any{"temperature": t}
	}
	if text != "" && err == nil {
		out["temperature"] = t
	}
	return out
}

// maxVerdict bounds the answer of a judge, in bytes.
const maxVerdict = 256 << 10

// collect asks a model. One that is broken already gets no retries: an evaluation has many
// questions, and would wait for each.
func (j *Judge) collect(ctx context.Context, name string, m llm.Model, req llm.Request) (string, error) {
	var b strings.Builder
	left := judgeRetries
	if j.isBroken(name) {
		left = 0
	}
	for d, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			return "", err
		case d.Kind == llm.RetryDelta && left == 0:
			j.setBroken(name, true)
			return "", d.Err
		case d.Kind == llm.RetryDelta:
			left--
			j.notify("the judge %s failed: %v; trying again in %s, %d more after that", name, d.Err, d.Retry.Delay, left)
		case d.Kind == llm.TextDelta && b.Len() < maxVerdict:
			b.WriteString(d.Text)
		}
	}
	j.setBroken(name, false)
	return b.String(), nil
}

func (j *Judge) isBroken(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken[name]
}

func (j *Judge) setBroken(name string, broken bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.broken = map[string]bool{}
	}
	j.broken[name] = broken
}
