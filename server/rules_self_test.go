package server_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// Each rule finds its violations, and nothing else. A line of a case is a message of the client (>)
// or the daemon (<); C: and S: stand for contents and statuses of the chat c.
func TestRules(t *testing.T) {
	t.Parallel()
	const (
		begin   = `> {"method":"initialized"}` + "\n"
		opening = begin + `> {"id":1,"method":"chat/prompt","params":{"chatId":"c"}}` + "\n" + `< {"method":"chat/opened","params":{"chatId":"c"}}` + "\n"
		echo    = `C:user {"type":"text","text":"hi\n","contentId":"1"}` + "\n" + "S: running\n"
		end     = "S: idle\n" + `C:system {"type":"progress","state":"finished","text":""}` + "\n"
		call    = `"id":"1","name":"n","server":"s","origin":"native"`
		prepare = `C:assistant {"type":"toolCallPrepare",` + call + `,"argumentsText":""}` + "\n"
		run     = `C:assistant {"type":"toolCallRun",` + call + `,"arguments":{"x":null},"manualApproval":true,"summary":"s","details":{"type":"d"}}` + "\n"
		running = `C:assistant {"type":"toolCallRunning",` + call + `,"arguments":{},"summary":"s","details":{"type":"d"}}` + "\n"
	)
	for _, c := range []struct{ name, conversation, want string }{
		{"a turn", opening + echo + prepare + run + running + end, ""},
		{"a chat without a name", begin + `> {"id":1,"method":"chat/prompt","params":{}}` + "\n" + echo + end, ""},
		{"before initialized", `< {"method":"chat/opened","params":{"chatId":"c"}}`, "before initialized"},
		{"params", begin + `< {"method":"chat/opened"}`, "params are not an object"},
		{"an unknown method", begin + `< {"method":"chat/closed","params":{}}`, "the protocol has no chat/closed"},
		{"an id", begin + `< {"id":1,"method":"chat/opened","params":{"chatId":"c"}}`, "notification with an id"},
		{"a low id", begin + `< {"id":7,"method":"editor/getDiagnostics","params":{}}`, "may be a client's own"},
		{"a null", begin + `< {"method":"tool/serverUpdated","params":{"tools":[{"name":null}]}}`, `null at "tools[].name"`},
		{"an allowed null", begin + `< {"method":"config/updated","params":{"chat":{"selectVariant":null}}}`, ""},
		{"a null result", `> {"id":1,"method":"chat/delete"}` + "\n" + `< {"id":1,"result":null}`, `chat/delete: null`},
		{"an allowed null result", `> {"id":1,"method":"shutdown"}` + "\n" + `< {"id":1,"result":null}`, ""},
		{"both", `> {"id":1,"method":"shutdown"}` + "\n" + `< {"id":1,"result":null,"error":null}`, "needs a code"},
		{"neither", `> {"id":1,"method":"shutdown"}` + "\n" + `< {"id":1}`, "needs a result"},
		{"an error without a code", `> {"id":1,"method":"shutdown"}` + "\n" + `< {"id":1,"error":{"message":"m"}}`, "needs a code"},
		{"an answer to nothing", `< {"id":1,"result":{}}`, "needs a result and a request"},
		{"a large configuration", begin + `< {"method":"config/updated","params":{"chat":{"models":["` + strings.Repeat("m", 60<<10) + `"]}}}`, "loses such messages"},
		{"an unknown chat", begin + "S: running", "does not know this chat"},
		{"a deleted chat", opening + `< {"method":"chat/deleted","params":{"chatId":"c"}}` + "\nS: idle", "does not know this chat"},
		{"a task's end", begin + `< {"method":"$/progress","params":{"type":"finish","taskId":"x"}}`, "did not start"},
		{"no beginning", opening + end, "begun: false"},
		{"two ends", opening + echo + end + end, "end 2 of 1"},
		{"an end behind a replay", opening + echo + end + `< {"method":"chat/cleared","params":{"chatId":"c","messages":true}}` + "\n" + strings.Split(echo, "S:")[0] + end, "end 2 of 1"},
		{"another daemon's turn", opening + echo + end + echo + end, ""},
		{"no idle", opening + echo + `C:system {"type":"progress","state":"finished","text":""}`, `"running", neither idle`},
		{"a loud end", opening + echo + end + `C:assistant {"type":"text","text":"x"}`, "not mute"},
		{"a wrong role", opening + `C:user {"type":"usage","sessionTokens":1}`, "no such content"},
		{"a missing key", opening + `C:system {"type":"usage"}`, "no sessionTokens"},
		{"an empty text", opening + `C:assistant {"type":"text","text":""}`, "empty text"},
		{"silent progress", opening + `C:system {"type":"progress","state":"running","text":""}`, "runs with a text"},
		{"a bare echo", opening + `C:user {"type":"text","text":"hi"}`, "ends with a newline"},
		{"no prepare", opening + run, "no prepare"},
		{"no run", opening + prepare + running, "no run"},
		{"two runs", opening + prepare + run + run, "a second run"},
		{"no details", opening + prepare + run + strings.Replace(running, `"type":"d"`, "", 1), "not repeated"},
		{"no summary", opening + prepare + run + strings.Replace(running, `"summary":"s",`, "", 1), "not repeated"},
		{"a diff", opening + prepare + strings.Replace(run, `{"type":"d"}`, `{"type":"fileChange","diff":"--- a\n"}`, 1), "without the names"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRules(&silent{TB: t})
			out := r.watchWrites(io.Discard)
			for line := range strings.Lines(c.conversation) {
				line = strings.TrimSpace(line)
				head, rest, _ := strings.Cut(line, " ")
				switch {
				case head == ">":
					r.trace(true, []byte(rest))
					continue
				case head == "S:":
					rest = fmt.Sprintf(`{"method":"chat/statusChanged","params":{"chatId":"c","status":%q}}`, rest)
				case strings.HasPrefix(head, "C:"):
					rest = fmt.Sprintf(`{"method":"chat/contentReceived","params":{"chatId":"c","role":%q,"content":%s}}`, head[2:], rest)
				}
				_, _ = fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(rest), rest)
			}
			got := strings.Join(r.findings(), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
	for _, frame := range []string{"{}", "Content-Length: 3\r\n\r\n{}", "Content-Length: 3\r\n\r\n{ }", "Content-Length: 2\r\nContent-Type: x\r\n\r\n{}", "Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n{}"} {
		r := newRules(&silent{TB: t})
		if r.checkWritten([]byte(frame)); len(r.findings()) != 1 {
			t.Errorf("%q: found %q", frame, r.findings())
		}
	}
}

// silent is a test that ignores the findings of the rules.
type silent struct{ testing.TB }

func (*silent) Cleanup(func()) {}
