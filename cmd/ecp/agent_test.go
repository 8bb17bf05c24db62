package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// testAgent is the agent of the tests: this program with the argument agent and a word for its
// behaviour. It answers with its input and the number of its steps.
type testAgent struct {
	mode  string
	file  string
	steps int
	out   *bufio.Writer
}

// agentRequest is a request of a runtime.
type agentRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Input  string         `json:"input"`
		Config map[string]any `json:"config"`
	} `json:"params"`
}

func runTestAgent(args []string) {
	a := &testAgent{mode: args[0], out: bufio.NewWriter(os.Stdout)}
	if len(args) > 1 {
		a.file = args[1]
	}
	a.begin()
	in := bufio.NewReader(os.Stdin)
	if a.mode == "unread" {
		time.Sleep(time.Hour)
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			a.end()
			return
		}
		var r agentRequest
		if json.Unmarshal(line, &r) == nil {
			a.answer(r, string(line))
			_ = a.out.Flush()
		}
	}
}

func (a *testAgent) begin() {
	switch a.mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "no config found")
		os.Exit(3)
	case "stderr": // far more than a pipe holds
		for range 1000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("log ", 100))
		}
	case "stderr-flood": // endless
		go func() {
			for {
				if _, err := os.Stderr.WriteString(strings.Repeat("log ", 1000) + "\n"); err != nil {
					return
				}
			}
		}()
	case "env":
		fmt.Fprintln(os.Stderr, os.Getenv("ECP_RPC_TIMEOUT"))
	case "fork", "deaf", "nameless":
		a.orphan(a.file)
	}
}

// orphan leaves a process in its own session that ignores signals, and writes its id to a file.
func (a *testAgent) orphan(file string) {
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM HUP INT; echo $$ >> "+file+"; while :; do sleep 1; done")
	cmd.SysProcAttr = ownSession()
	cmd.Stdout = os.Stdout // it holds the agent's output open
	_ = cmd.Start()
	if a.mode == "deaf" { // and the agent itself ignores signals too
		ignoreSignals()
	}
	for range 6000 {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (a *testAgent) end() {
	if a.mode == "deaf" {
		select {}
	}
}

func (a *testAgent) say(id json.RawMessage, result any) {
	data, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, data)
}

func (a *testAgent) answer(r agentRequest, line string) {
	switch r.Method {
	case "agent/initialize":
		if word, rest, _ := strings.Cut(a.mode, ":"); word == "init" { // with this result
			fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", r.ID, strings.ReplaceAll(rest, "PARAMS", line))
			return
		}
		if a.mode == "nameless" {
			a.say(r.ID, map[string]any{"name": "", "capabilities": map[string]any{}})
			return
		}
		a.say(r.ID, map[string]any{"name": "test", "capabilities": map[string]any{"config": r.Params.Config}})
	case "agent/reset":
		a.steps = 0
		a.say(r.ID, true)
	case "agent/step":
		a.steps++
		a.step(r, line)
	}
}

// result is the result of a step without errors.
func (a *testAgent) result(input string) map[string]any {
	return map[string]any{
		"status": "done", "public_output": fmt.Sprintf("%s %d", input, a.steps), "evaluation_context": "saw " + input, "logs": "log of " + input,
		"tool_calls": []map[string]any{{"name": "calc", "arguments": map[string]any{"x": 1, "deep": map[string]any{"a": 1, "b": 2}}, "result": "one"}},
		"usage":      map[string]any{"input_tokens": 10, "output_tokens": 5}, "cost_usd": 0.25, "timing": map[string]any{"total_ms": 7},
	}
}

func (a *testAgent) step(r agentRequest, line string) {
	result := a.result(r.Params.Input)
	switch word, rest, _ := strings.Cut(a.mode, ":"); word {
	case "hang", "stderr-flood":
		time.Sleep(time.Hour)
	case "closed": // it closes its output and continues to run
		_ = os.Stdout.Close()
		time.Sleep(time.Hour)
	case "stopped":
		stopItself()
	case "log": // it records the input for the test
		f, err := os.OpenFile(a.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			fmt.Fprintln(f, r.Params.Input)
			_ = f.Close()
		}
	case "hang-once": // on a certain input
		if r.Params.Input == rest {
			time.Sleep(time.Hour)
		}
	case "late": // it stops at its time limit
		result["status"], result["stop_reason"] = "paused", "timeout"
	case "fail":
		if r.Params.Input == rest {
			fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"it broke"}}`+"\n", r.ID)
			return
		}
	case "id": // with another id than the call's
		fmt.Fprint(a.out, withID(rest, string(r.ID))+"\n")
		return
	case "twice":
		a.say(r.ID, result)
	case "noise":
		for range 20000 {
			fmt.Fprintln(a.out, "thinking, thinking, thinking ...")
		}
	case "flood": // endless
		for {
			if _, err := a.out.WriteString(strings.Repeat("spam ", 1000) + "\n"); err != nil {
				os.Exit(1)
			}
		}
	case "objects":
		fmt.Fprintln(a.out, `{"level":"info","msg":"a log"}`+"\n"+`{"jsonrpc":"2.0","method":"agent/progress","params":{}}`+"\n[1]\n3")
	case "long": // a line of 1 GB
		for range 1 << 10 {
			if _, err := a.out.Write(make([]byte, 1<<20)); err != nil {
				os.Exit(1)
			}
		}
	case "unterminated":
		fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"result":{"status":"done"}}`, r.ID)
		return
	case "nan": // as Python writes it
		fmt.Fprintf(a.out, `{"jsonrpc": "2.0", "id": %s, "result": {"status": "done", "tool_calls": [{"name": "a", "arguments": {"x": NaN}}]}}`+"\n", r.ID)
		return
	case "utf8":
		result["public_output"] = "grün 日本"
	case "latin1":
		fmt.Fprint(a.out, "\xe4\xf6\xfc\n")
		fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"result":{"status":"done","public_output":"gr`+"\xfc"+`n"}}`+"\n", r.ID)
		return
	case "empty":
		result["public_output"] = ""
	case "null":
		result["public_output"], result["tool_calls"] = nil, nil
	case "no-cost":
		delete(result, "cost_usd")
	case "usage":
		result["usage"] = json.RawMessage(rest)
	case "answer": // this text, after the id
		fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s%s}`+"\n", r.ID, rest)
		return
	case "say":
		result["public_output"] = rest
	case "status":
		result["status"] = rest
	case "crash":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(9)
	case "kill":
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
	case "request":
		result["public_output"] = line
	case "slow":
		ms, _ := strconv.Atoi(rest)
		time.Sleep(time.Duration(ms) * time.Millisecond)
	case "write": // into its workspace
		dir := os.Getenv("ECP_WORKSPACE")
		_ = os.WriteFile(dir+"/answer.txt", []byte("42\n"), 0o644)
		_ = os.Remove(dir + "/old.txt")
	}
	a.say(r.ID, result)
}

// withID is an answer whose id is derived from the call's, for which {} stands; none leaves the id
// out.
func withID(form, id string) string {
	answer := `{"jsonrpc":"2.0","id":` + strings.ReplaceAll(form, "{}", id) + `,"result":{"status":"done","public_output":"x"}}`
	if form == "none" {
		answer = `{"jsonrpc":"2.0","result":{"status":"done","public_output":"x"}}`
	}
	return answer
}
