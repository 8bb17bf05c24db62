// Package judge asks a model to grade evaluations (ECP, llm_judge): a model of OpenAI, as in the
// reference runtime, or provider/name for any model in the user's eca configuration.
//
// It guarantees that a failing judge delays an evaluation only for a bounded time, that each
// failure and long wait is reported, and that requests are recorded in eca's journal, without
// secrets, and count for the budget of the day. It has no chats and no tools, and reads nothing from
// the workspace, because the folder of an evaluation is part of what is evaluated.
//
// Entry point: New.
package judge

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

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// Judge answers the questions of an evaluation. It reads the user's configuration at the first
// question.
type Judge struct {
	opts      Options
	setupOnce sync.Once
	loaded    *setup // nil before the first question

	mu     sync.Mutex      // guards broken
	broken map[string]bool // models that failed after retries and have not answered since
}

// New returns a judge. Close must be called.
func New(o Options) *Judge {
	return &Judge{opts: withDefaults(o), broken: map[string]bool{}}
}

// setup reads the user's configuration at the first question.
func (j *Judge) setup() *setup {
	j.setupOnce.Do(func() { j.loaded = newSetup(j.opts) })
	return j.loaded
}

// Limits on waiting for a judge: an evaluation must not wait for minutes for a failing judge, and
// must not wait silently.
const (
	judgeRetries  = 2                // for one question
	judgeTimeout  = 3 * time.Minute  // for one question, including retries
	brokenTimeout = time.Minute      // for one question to a broken model
	noticeAfter   = 20 * time.Second // a notice reports that the judge has not answered for so long
)

// Environment variables of the judge, as in the reference runtime, and the judge's model without them.
const (
	judgeModelVariable       = "ECP_LLM_JUDGE_MODEL"
	judgeTemperatureVariable = "ECP_LLM_JUDGE_TEMPERATURE"
	judgeModel               = "gpt-4o-mini"
	openAIURL                = "https://api.openai.com/v1"
)

// Ask implements grade.Judge.
func (j *Judge) Ask(ctx context.Context, model, system, question string) (string, error) {
	name := j.name(model)
	m, err := j.resolve(name)
	if err != nil {
		return "", err
	}
	if err := j.setup().checkBudget(ctx); err != nil {
		return "", fmt.Errorf("model %s: %w", name, err)
	}
	req := llm.Request{
		Purpose: llm.PurposeTurn, Model: m.Name, System: system, Reasoning: m.Reasoning, Headers: m.Headers,
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: question}}}},
		Extra:    llm.DeepMerge(llm.MergePayloads(m.Extra, m.Variants[catalog.Default]), j.extra(name)),
	}
	timeout := judgeTimeout
	if j.isBroken(name) {
		timeout = brokenTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	waiting := time.AfterFunc(noticeAfter, func() { j.notify("the judge %s has not answered for %s", name, noticeAfter) })
	defer waiting.Stop()
	answer, err := j.collect(ctx, name, m.Client, req)
	var refused *llm.Error
	if errors.As(err, &refused) && refused.Kind == llm.ErrBadRequest && strings.Contains(strings.ToLower(refused.Message), "temperature") {
		req.Extra = maps.Clone(req.Extra) // the request is still being recorded
		delete(req.Extra, "temperature")  // some models accept only their default temperature
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

// Check returns the error that each question to a model would have if the model is not configured. It
// sends no request. An empty model means the default.
func (j *Judge) Check(model string) error {
	_, err := j.resolve(j.name(model))
	return err
}

// name returns the name of the model to ask if a grader names model, which may be empty.
func (j *Judge) name(model string) string {
	return cmp.Or(model, j.opts.Model, j.opts.Getenv(judgeModelVariable), judgeModel)
}

func (j *Judge) notify(format string, args ...any) {
	if j.opts.Notify != nil {
		j.opts.Notify(fmt.Sprintf(format, args...))
	}
}

// Close releases the resources of the judge. It must be called after the last question.
func (j *Judge) Close() {
	j.setupOnce.Do(func() {})
	if j.loaded != nil {
		j.loaded.close()
	}
}

// resolve finds a model. A name of the form provider/name is looked up in the user's configuration;
// other names are models of OpenAI, or of the server at OPENAI_BASE_URL.
func (j *Judge) resolve(name string) (providers.Model, error) {
	getenv := j.opts.Getenv
	if strings.Contains(name, "/") {
		m, err := j.setup().models.Resolve(name, "")
		if err == nil || getenv("OPENAI_BASE_URL") == "" {
			m.Client = countedModel{m.Client, j.setup().ledger, m.ID, m.Cost}
			return m, err
		}
	}
	key := getenv("OPENAI_API_KEY")
	if key == "" {
		return providers.Model{}, errors.New("OPENAI_API_KEY not set in environment; another model can judge: " + judgeModelVariable + "=provider/name")
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
		Client: j.setup().network.Client(netclient.Options{Connect: limits.Connect}),
	}
	client := llm.WithRetry(openai.NewNonStreaming(at), llm.DefaultRetry())
	id := "openai/" + name
	recorded := j.setup().journal.Model(client, id)
	return providers.Model{Name: name, Client: countedModel{recorded, j.setup().ledger, id, config.Cost{}}}, nil
}

// extra returns additional fields of requests: the temperature, if the user set it or the reference
// runtime would send it.
func (j *Judge) extra(name string) map[string]any {
	out := map[string]any{}
	text := j.opts.Getenv(judgeTemperatureVariable)
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

// collect asks a model and returns its text. A model that is already known to be broken gets no
// retries, because an evaluation has many questions and would wait at each one.
func (j *Judge) collect(ctx context.Context, name string, m llm.Model, req llm.Request) (string, error) {
	var b strings.Builder
	retriesLeft := judgeRetries
	if j.isBroken(name) {
		retriesLeft = 0
	}
	for d, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			return "", err
		case d.Kind == llm.RetryDelta && retriesLeft == 0:
			j.setBroken(name, true)
			return "", d.Err
		case d.Kind == llm.RetryDelta:
			retriesLeft--
			j.notify("the judge %s failed: %v; trying again in %s, %d more after that", name, d.Err, d.Retry.Delay, retriesLeft)
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
	j.broken[name] = broken
}
