package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-dec29ce4/eca/tools"
)

// scriptedUser is a user who gives scripted answers in order; "wait" leaves a question open.
type scriptedUser struct {
	list      []string
	questions []string
}

func (a *scriptedUser) Ask(ctx context.Context, q Question) (answer string, cancelled bool, err error) {
	a.questions = append(a.questions, q.Text)
	if len(a.list) == 0 {
		return "", false, errors.New("a question too many: " + q.Text)
	}
	answer, a.list = a.list[0], a.list[1:]
	if answer == "wait" {
		<-ctx.Done()
		return "", false, ctx.Err()
	}
	return answer, answer == "", nil
}

// When a server requires a page before it carries a call out, eca repeats the call after the server
// or the user reports that the page is done. It opens nothing without asking.
func TestPagesBeforeACall(t *testing.T) {
	const required = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32042,"message":"more is needed","data":{"elicitations":[
		{"mode":"url","elicitationId":"e1","url":"https://login.example/connect?e=1","message":"Connect your files"}]}}}`
	for name, c := range map[string]struct {
		answers []string
		done    string // the page that the server reports as completed
		want    string
		opened  string
		calls   int
	}{
		"the server says so": {[]string{"Open it", "wait"}, "e1", "the files", "https://login.example/connect?e=1", 2},
		"the user says so":   {[]string{"Open it myself", "Continue"}, "e9", "the files", "", 2},
		"declined":           {[]string{"Decline"}, "", "open a page at login.example first, and the user did not", "", 1},
		"closed":             {[]string{""}, "", "and the user did not", "", 1},
		"given up":           {[]string{"Open it myself", "Cancel"}, "", "did not finish", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, l := newTestConnection(t)
				user, opened := &scriptedUser{list: c.answers}, ""
				conn.m = New(Deps{Asker: func() Asker { return user }, OpenURL: func(_ context.Context, url string) error {
					opened = url
					return nil
				}})
				defer conn.m.Close()
				conn.session.handlers, conn.session.calls, conn.session.onNotification = responder{conn.m.deps}.handlers(), conn.activeCalls, conn.handleNotification
				server := &taskServer{answers: map[string][]string{"tools/call": {required, ok(`{"content":[{"type":"text","text":"the files"}]}`)}}}
				go server.serve(t, l, conn.session)
				go func() {
					synctest.Wait() // until the call waits for it
					if c.done != "" {
						l.say(t, `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"`+c.done+`"}}`)
					}
				}()
				res, err := conn.call(t.Context(), &Tool{name: "t", spec: tools.Spec{Name: "t"}}, tools.Call{}, nil)
				got := strings.Join(res.Outputs, " ")
				if err != nil {
					got = err.Error()
				}
				if !strings.Contains(got, c.want) || opened != c.opened || server.count("tools/call ") != c.calls {
					t.Errorf("%q after %d calls; opened %q, asked %q", got, server.count("tools/call "), opened, user.questions)
				}
				if first := user.questions[0]; !strings.Contains(first, "**login.example**") || !strings.Contains(first, "\nhttps://login.example/connect?e=1") {
					t.Errorf("asked %q", first)
				}
			})
		})
	}
}

// The user is warned about suspicious addresses; some addresses are refused.
func TestPages(t *testing.T) {
	for address, want := range map[string]string{
		"https://pay.example/x?y=1":                "pay.example",
		"http://localhost:3000/":                   "localhost:3000",
		"http://127.0.0.1/":                        "127.0.0.1",
		"http://pay.example/":                      "pay.example: the connection is not encrypted",
		"https://bank.example@evil.example/":       "evil.example: the text before the @ is not the host",
		"https://xn--pypal-4ve.example/":           "xn--pypal-4ve.example: letters in the host name may look like others",
		"https://pаypal.example/":                  "pаypal.example: letters in the host name may look like others",
		"javascript:alert(1)":                      "",
		"file:///etc/passwd":                       "",
		"https:///nowhere":                         "",
		"https://x/" + strings.Repeat("a", maxURI): "",
	} {
		p, err := parsePage(address)
		got := strings.Join(append([]string{p.host}, p.warnings...), ": ")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.50s: %q, %v, want %q", address, got, err, want)
		}
	}
}
