package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// workingConfig is a configuration whose provider has the models priced and unpriced. With the model
// priced, each answer of workingTape costs $0.04.
func workingConfig(p *provider) (config string) {
	return `ECA_CONFIG={"chat":{"title":false},"defaultModel":"mock/priced","providers":{"mock":{"api":"openai-responses","key":"k","fetchModels":false,"url":"` + p.URL + `",` +
		`"models":{"priced":{"limit":{"context":100000,"output":1000},"cost":{"input":100,"output":200}},"unpriced":{"limit":{"context":100000,"output":1000}}}}}}`
}

// workingTape is a cassette whose answers to the first prompt call a tool, except the fourth.
func workingTape() string {
	out := "cassette: 1\nturns:\n  - steps:\n"
	for i := range 3 {
		out += fmt.Sprintf("      - {calls: [{id: c%d, tool: eca__glob, arguments: {pattern: \"%d*\"}}], usage: {input: 200, output: 100}}\n", i, i)
	}
	return out + "      - {text: Done., usage: {input: 200, output: 100}}\n  - steps: [{text: More., usage: {input: 200, output: 100}}]\n"
}

func (p *provider) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bodies)
}

// A turn of exec ends at its limit, between two requests, with its own exit code and its reason.
func TestExecEndsAtItsLimit(t *testing.T) {
	for name, c := range map[string]struct {
		args     []string
		requests int
		code     int
		said     string
	}{
		"cost":          {[]string{"--max-cost", "0.05"}, 2, exitBudget, "This turn's budget is used up: $0.0800 of $0.0500."},
		"dollars":       {[]string{"--max-cost", "$0.05"}, 2, exitBudget, "$0.0800 of $0.0500."},
		"remedy":        {[]string{"--max-cost", "0.05"}, 2, exitBudget, "--max-cost sets this limit: raise it, or leave it out."},
		"tokens":        {[]string{"--max-tokens", "300"}, 1, exitBudget, "300 tokens of 300 tokens."},
		"time":          {[]string{"--max-time", "1ms"}, 1, exitBudget, "This turn's budget is used up"},
		"the first one": {[]string{"--max-cost", "5", "--max-tokens", "700"}, 3, exitBudget, "900 tokens of 700 tokens."},
		"enough":        {[]string{"--max-cost", "5", "--max-tokens", "100000", "--max-time", "3600"}, 4, 0, "Done."},
		"at last":       {[]string{"--max-cost", "0.15"}, 4, 0, "This turn's budget is used up: $0.1600 of $0.1500."},
		"nearly":        {[]string{"--max-cost", "0.19"}, 4, 0, "84% of this turn's budget is spent: $0.1600 of $0.1900."},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, workingTape())
			here := newPlace(t, workingConfig(p))
			out, errOut, code := runProgram(t, here, "", append([]string{"exec", "work", "--approve", "all"}, c.args...)...)
			if name == "time" && p.requests() == 0 { // the machine was slow before the first request
				c.requests = 0
			}
			if code != c.code || p.requests() != c.requests || !strings.Contains(out+errOut, c.said) {
				t.Errorf("exit %d, %d requests\n%s%s", code, p.requests(), out, errOut)
			}
		})
	}
}

func TestExecJSONNamesTheLimit(t *testing.T) {
	p := newProvider(t, workingTape())
	here := newPlace(t, workingConfig(p))
	out, errOut, code := runProgram(t, here, "", "exec", "work", "--json", "--max-cost", "0.01")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var result struct {
		Type, ExitReason, Error, ChatID string
		ExitCode                        int
		Cost                            float64
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil || code != exitBudget ||
		result.ExitReason != "budget" || result.ExitCode != exitBudget || result.Cost != 0.04 || !strings.Contains(result.Error, "$0.0400 of $0.0100") {
		t.Fatalf("exit %d, %v, %+v\n%s", code, err, result, errOut)
	}
	if out, errOut, code := runProgram(t, here, "", "exec", "go on", "--chat", result.ChatID, "--max-cost", "1"); code != 0 || out != "More.\n" {
		t.Errorf("the chat goes on: exit %d, %s%s", code, out, errOut)
	}
}

// The cost is not rounded to cents, as it is for editors: scripts add up the cost of many runs.
func TestExecJSONHasTheExactCost(t *testing.T) {
	p := newProvider(t, workingTape())
	here := newPlace(t, strings.Replace(workingConfig(p), `{"input":100,"output":200}`, `{"input":0.5,"output":1}`, 1))
	out, errOut, code := runProgram(t, here, "", "exec", "work", "--json", "--approve", "all")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var result struct{ Cost float64 }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil || code != 0 || math.Abs(result.Cost-0.0008) > 1e-9 {
		t.Errorf("exit %d, %v, %+v\n%s", code, err, result, errOut)
	}
}

// The configured budget ends a turn of exec, too, without a question. The day counts what earlier runs
// have spent.
func TestExecHasTheConfiguredBudget(t *testing.T) {
	p := newProvider(t, workingTape())
	here := newPlace(t, strings.Replace(workingConfig(p), `{"chat"`, `{"budget":{"day":"$0.10","turn":["$7"]},"chat"`, 1))
	_, errOut, code := runProgram(t, here, "", "exec", "work")
	if code != exitBudget || p.requests() != 3 || !strings.Contains(errOut, "Today's budget is used up: $0.1200 of $0.1000.") || !strings.Contains(errOut, "budget.day (ECA_CONFIG:1) sets this limit") {
		t.Errorf("exit %d, %d requests: %s", code, p.requests(), errOut)
	}
	if _, errOut, code = runProgram(t, here, "", "exec", "again"); code != exitBudget || p.requests() != 3 {
		t.Errorf("exit %d, %d requests: %s", code, p.requests(), errOut)
	}
	if _, errOut, code := runProgram(t, here, "", "exec", "--ephemeral", "again"); code != exitBudget || p.requests() != 3 {
		t.Errorf("without a trace: exit %d, %d requests: %s", code, p.requests(), errOut)
	}
}

// Invalid limits are wrong usage. A limit in money is refused for a model without a price. No request
// is made.
func TestExecRefusesInvalidLimits(t *testing.T) {
	p := newProvider(t, workingTape())
	here := newPlace(t, workingConfig(p))
	for line, want := range map[string]string{
		"--max-cost 0": "must be more than 0", "--max-cost=-1": "must be more than 0", "--max-cost 5EUR": "unknown unit or currency, eur", "--max-cost much": "not a limit", "--max-cost=": "is empty",
		"--max-cost 5m": "not an amount of money", "--max-tokens 0": "must be more than 0", "--max-tokens=-5": "must be more than 0", "--max-tokens many": "whole number",
		"--max-time 0s": "above 0", "--max-time=-1m": "above 0", "--max-time long": "a time such as", "--max-time NaN": "above 0",
	} {
		_, errOut, code := runProgram(t, here, "", append([]string{"exec", "work"}, strings.Fields(line)...)...)
		if flag, _, _ := strings.Cut(strings.Fields(line)[0], "="); code != 2 || !strings.Contains(errOut, want) || !strings.Contains(errOut, flag) {
			t.Errorf("%s: exit %d, %s", line, code, errOut)
		}
	}
	_, errOut, code := runProgram(t, here, "", "exec", "work", "-m", "mock/unpriced", "--max-cost", "1")
	if code != exitFailed || !strings.Contains(errOut, "the price of mock/unpriced is not known") {
		t.Errorf("exit %d, %s", code, errOut)
	}
	if p.requests() != 0 {
		t.Errorf("%d requests", p.requests())
	}
	out, errOut, code := runProgram(t, here, "", "exec", "work", "-m", "demo/offline", "--max-cost", "1")
	if code != exitFailed || out != "" || !strings.Contains(errOut, "the demo model demo/offline is a script that costs nothing; leave out --max-cost") {
		t.Errorf("demo: exit %d, %s%s", code, out, errOut)
	}
}

// A limit in time also ends the wait for a provider that says nothing, stops in the middle of its
// answer, or fails again and again.
func TestExecEndsAtItsTimeLimitWhileTheProviderIsSilent(t *testing.T) {
	needs.Long(t)
	const begun = `data: {"type":"response.output_text.delta","item_id":"m","delta":"Half"}` + "\n\n"
	hang := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, answer := range map[string]http.HandlerFunc{
		"says nothing": hang,
		"stops": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, begun)
			hang(w, r)
		},
		"breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, begun)
		},
		"fails": refusePrompts(http.StatusBadGateway, "no such upstream"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := httptest.NewServer(answer)
			defer provider.Close()
			here := newPlace(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL="+provider.URL, `ECA_CONFIG={"chat":{"title":false},"providers":{"openai":{"fetchModels":false}}}`)
			begin := time.Now()
			_, errOut, code := runProgram(t, here, "", "exec", "-m", "openai/gpt-5.2", "--max-time", "2s", "hi")
			if took := time.Since(begin); code != exitBudget || took > maxWrongTime || !strings.Contains(errOut, "This turn's budget is used up") {
				t.Errorf("exit %d after %s: %s", code, took, errOut)
			}
			if name == "fails" && (strings.Contains(errOut, "overloaded") || !strings.Contains(errOut, "502 Bad Gateway: no such upstream")) {
				t.Errorf("the cause is not named: %s", errOut)
			}
		})
	}
}
