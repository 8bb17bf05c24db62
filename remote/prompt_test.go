package remote_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/remote"
)

// A prompt that is refused is answered with the reason, which the page shows with the user's text, and
// nothing of it is stored: one for a model that cannot be used, and one for a chat in which another
// process is busy.
func TestRefusedPrompts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: Done.}]\n  - {user: '^hang', steps: [{text: Waits., hang: true}]}\n", object{"defaultModel": "mock/unlisted"}, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	from := 0
	for _, c := range []struct {
		chat, model string
		status      int
		why         string
	}{
		{"c", "mock/unlisted", 200, ""}, // the user's choice
		{"c", "mock/none", 409, "unknown model mock/none"},
		{"c", "none/m", 409, "no provider none"},
		{"new", "none", 409, "unknown model none"},
		{"busy", "", 409, "used by another eca process"},
	} {
		if c.chat == "busy" {
			holdElsewhere(t, r, c.chat)
		}
		status, body := r.do("POST", "/chats/"+c.chat+"/prompt", object{"message": "ask " + c.model + ".", "model": c.model})
		if status != c.status || !strings.Contains(body, c.why) || (status == 409) != strings.Contains(body, "prompt_refused") {
			t.Errorf("%s: %d %s", c.model, status, body)
		}
		of := `"chatId":"` + c.chat + `"`
		said, _ := page.await(from, "chat:content-received", of, `"role":"user"`, "ask "+c.model+".")
		if c.why != "" {
			page.await(said, "chat:content-received", of, `"role":"system"`, c.why)
		}
		from, _ = page.await(said, "chat:content-received", of, `"state":"finished"`)
		if c.chat == "c" {
			if _, loaded := r.do("GET", "/chats/c", nil); strings.Count(loaded, `"role":"user"`) != 1 {
				t.Errorf("after %s: %s", c.model, loaded)
			}
		}
	}
	if _, list := r.do("GET", "/chats", nil); strings.Contains(list, `"new"`) {
		t.Errorf("a refused prompt made a chat: %s", list)
	}
}

// A chat in which another process is busy cannot be changed, and the answer says why.
func TestBusyElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, "default: {steps: [{text: Done.}]}\nturns: [{user: '^hang', steps: [{text: Waits., hang: true}]}]\n", nil, nil)
	if status, body := r.do("POST", "/chats/c/prompt", object{"message": "hello"}); status != 200 {
		t.Fatal(status, body)
	}
	r.Await(0, "the end", fake.Contains("chat/statusChanged", `"idle"`))
	holdElsewhere(t, r, "c")
	for request, body := range map[string]object{"POST /chats/c/clear": {}, "DELETE /chats/c": nil, "POST /chats/c/rollback": {"contentId": "x"}} {
		method, path, _ := strings.Cut(request, " ")
		if status, answer := r.do(method, path, body); status != 409 || !strings.Contains(answer, "chat_busy") || !strings.Contains(answer, "another eca process") {
			t.Errorf("%s: %d %s", request, status, answer)
		}
	}
}

// holdElsewhere has another daemon begin a turn in a chat, which does not end.
func holdElsewhere(t *testing.T, r *rig, chatID string) {
	t.Helper()
	d := r.world.Daemon()
	t.Cleanup(d.Close)
	d.Configure(nil, []string{r.world.Root})
	session, _, err := d.Engine().Open(t.Context(), chatID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Submit(chat.Prompt{Text: "hang"}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Refresh().Wait(t.Context()); err != nil { // until its begin is stored
		t.Fatal(err)
	}
}

// A dialog that another device opens after a prompt was checked is not answered by that prompt.
func TestDialogOfAnotherDevice(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: One.}]\n", nil, nil)
	control, _ := r.pair(remote.Control)
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	r.Await(0, "the end", fake.Finished())
	session, _ := r.daemon.Engine().Lookup("c")
	login := sync.OnceFunc(func() {
		if _, err := session.Submit(chat.Prompt{Text: "/login"}).Wait(context.Background()); err != nil {
			t.Error(err)
		}
		for !session.InDialog() {
			time.Sleep(time.Millisecond)
		}
	})
	defer r.daemon.Engine().Subscribe(func(n chat.News) { // between the check of the prompt and its turn
		if n.Kind == chat.ChatPrompted {
			login()
		}
	}).Close()
	status, body, _ := r.send(r.request(control, "POST", "/api/v1/chats/c/prompt", object{"message": "mock"}))
	if status != 409 || !strings.Contains(body, "may not use commands") || !session.InDialog() {
		t.Errorf("%d %s, in the dialog: %v", status, body, session.InDialog())
	}
	if got := r.Conversation(); strings.Contains(got, "API key") {
		t.Error("the dialog got the prompt:", got)
	}
}
