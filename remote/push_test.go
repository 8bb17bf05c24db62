package remote_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/remote"
)

// notification is what a browser shows.
type notification struct{ Kind, Chat, Folder string }

// browser is a browser and its push service.
type browser struct {
	t        *testing.T
	key      *ecdh.PrivateKey
	auth     []byte
	service  *httptest.Server
	status   atomic.Int64 // of its answers
	requests atomic.Int64
	got      chan notification
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, key: key, auth: []byte("0123456789abcdef"), got: make(chan notification, 100)}
	b.status.Store(http.StatusCreated)
	b.service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Encoding") != "aes128gcm" || r.Header.Get("TTL") == "" || !strings.HasPrefix(r.Header.Get("Authorization"), "vapid t=") {
			t.Errorf("%s %v: %v", r.Method, r.Header, err)
		}
		status := int(b.status.Load())
		if status == http.StatusCreated {
			b.got <- b.decrypt(body)
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(b.service.Close)
	return b
}

// subscription is what the page sends.
func (b *browser) subscription(path string) object {
	encode := base64.RawURLEncoding.EncodeToString
	return object{"endpoint": b.service.URL + path, "expirationTime": nil, "keys": object{"p256dh": encode(b.key.PublicKey().Bytes()), "auth": encode(b.auth)}}
}

// decrypt does what a browser does with a message (RFC 8291).
func (b *browser) decrypt(body []byte) (n notification) {
	const salt, header = 16, 16 + 4 + 1 + 65
	sender, err := ecdh.P256().NewPublicKey(body[header-65 : header])
	if err != nil {
		b.t.Error(err)
		return n
	}
	shared, err := b.key.ECDH(sender)
	if err != nil {
		b.t.Error(err)
		return n
	}
	derive := func(secret, salt []byte, info string, size int) []byte {
		out, err := hkdf.Key(sha256.New, secret, salt, info, size)
		if err != nil {
			b.t.Error(err)
		}
		return out
	}
	ikm := derive(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(sender.Bytes()), 32)
	block, err := aes.NewCipher(derive(ikm, body[:salt], "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		b.t.Error(err)
		return n
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		b.t.Error(err)
		return n
	}
	plain, err := gcm.Open(nil, derive(ikm, body[:salt], "Content-Encoding: nonce\x00", 12), body[header:], nil)
	if err != nil {
		b.t.Error(err)
		return n
	}
	text := strings.TrimSuffix(strings.TrimRight(string(plain), "\x00"), "\x02")
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		b.t.Errorf("%q: %v", text, err)
	}
	return n
}

// await waits for a notification of a kind, which must be the next one.
func (b *browser) await(kind, chat string) {
	b.t.Helper()
	select {
	case n := <-b.got:
		if n != (notification{kind, chat, "workspace"}) {
			b.t.Fatalf("%+v, not %s of %s", n, kind, chat)
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("no notification %s", kind)
	}
}

const pushTape = `turns:
  - user: '^run'
    steps: [{calls: [{id: r1, tool: eca__shell_command, arguments: {command: "touch made"}}]}, {text: Done.}]
  - user: '^ask'
    steps: [{calls: [{id: q1, tool: eca__ask_user, arguments: {question: "Which?"}}]}, {text: Done.}]
  - user: '^fail'
    steps: [{error: {status: 400, message: broken}}]
  - user: '^slow'
    steps: [{text: "Begins and ends.", delay: 100s}]
default: {steps: [{text: Hello.}]}
`

// newPushRig starts the remote server with notifications, and subscribes a device that may only watch.
func newPushRig(t *testing.T) (*rig, *browser, string, remote.Device) {
	t.Helper()
	r, b := newRig(t, pushTape, object{"remote": object{"push": true}}, object{"askQuestion": true}), newBrowser(t)
	token, dev := r.pair(remote.Watch)
	if status, text := r.callAPI(token, "POST", "/push", b.subscription("/device")); status != http.StatusNoContent {
		t.Fatalf("subscribed: %d %s", status, text)
	}
	return r, b, token, dev
}

// callAPI calls the API with a token.
func (r *rig) callAPI(token, method, path string, body any) (status int, text string) {
	r.t.Helper()
	status, text, _ = r.send(r.request(token, method, "/api/v1"+path, body))
	return status, text
}

// A device is notified about each thing that a user should know, once and encrypted, and not about a
// turn that the user stops.
func TestPush(t *testing.T) {
	t.Parallel()
	r, b, token, _ := newPushRig(t)
	prompt := func(chat, text string) { r.do("POST", "/chats/"+chat+"/prompt", object{"message": text}) }
	prompt("a", "hello")
	b.await("finished", "a")
	prompt("a", "run")
	b.await("approval", "a")
	r.do("POST", "/chats/a/approve/r1", nil)
	b.await("finished", "a")
	prompt("b", "fail")
	b.await("failed", "b")
	mark := r.Mark()
	prompt("b", "slow")
	r.Await(mark, "its begin", fake.Contains("chat/statusChanged", `"b"`, `"running"`))
	r.do("POST", "/chats/b/stop", nil)
	prompt("c", "hello")
	b.await("finished", "c")
	if status, text := r.callAPI(token, "DELETE", "/push", object{"endpoint": b.service.URL + "/device"}); status != http.StatusNoContent {
		t.Fatalf("unsubscribed: %d %s", status, text)
	}
	before := b.requests.Load()
	mark = r.Mark()
	prompt("c", "hello again")
	r.Await(mark, "the end", fake.Contains("chat/statusChanged", `"idle"`))
	time.Sleep(300 * time.Millisecond)
	if n := b.requests.Load(); n != before {
		t.Errorf("%d notifications after the end of the subscription", n-before)
	}
}

// A question of the model is worth a notification.
func TestPushQuestion(t *testing.T) {
	t.Parallel()
	r, b, _, _ := newPushRig(t)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	r.do("POST", "/chats/q/prompt", object{"message": "ask"})
	b.await("question", "q")
}

// A broken push service harms no other: redirects are not followed, failures end after
// three attempts, and a subscription that is gone is removed.
func TestPushServiceFails(t *testing.T) {
	t.Parallel()
	r, b, _, _ := newPushRig(t)
	turn := func() {
		mark := r.Mark()
		r.do("POST", "/chats/a/prompt", object{"message": "hello"})
		r.Await(mark, "the end", fake.Contains("chat/statusChanged", `"idle"`))
	}
	settle := func(what string, want int64) {
		t.Helper()
		for end := time.Now().Add(time.Minute); b.requests.Load() < want && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		if n := b.requests.Swap(0); n != want {
			t.Errorf("%s: %d requests, not %d", what, n, want)
		}
	}
	b.status.Store(http.StatusFound)
	turn()
	settle("a redirect", 1)
	b.status.Store(http.StatusServiceUnavailable)
	turn()
	settle("an overloaded service", 3)
	b.status.Store(http.StatusGone)
	turn()
	settle("a subscription that is gone", 1)
	b.status.Store(http.StatusCreated)
	turn()
	settle("after it", 0)
	if log := r.log.String(); strings.Contains(log, b.service.URL) {
		t.Errorf("the log has the endpoint:\n%s", log)
	}
}

// The endpoint of a subscription is an address that a client chose: eca sends nothing to hosts that
// are not public, and keeps nothing that it could not send to.
func TestPushEndpoints(t *testing.T) {
	t.Parallel()
	r, b, token, _ := newPushRig(t)
	with := func(key string, value any) object {
		s := b.subscription("/x")
		s[key] = value
		return s
	}
	for _, body := range []any{
		nil, "[]", `{"endpoint": 1}`,
		object{"endpoint": ""},
		with("keys", nil), with("keys", object{"p256dh": "x", "auth": "y"}),
		with("endpoint", "http://push.example.com/x"), with("endpoint", "file:///etc/passwd"), with("endpoint", "https://"),
		with("endpoint", "https://10.0.0.1/x"), with("endpoint", "https://[::1]/x"), with("endpoint", "https://192.168.1.1/x"),
		with("endpoint", "https://169.254.169.254/latest"), with("endpoint", "https://user:secret@example.com/x"), with("endpoint", "https://2130706433/x"),
		with("endpoint", "https://example.com/"+strings.Repeat("x", 3000)),
	} {
		if status, text := r.callAPI(token, "POST", "/push", body); status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", body, status, text)
		}
	}
	if status, _ := r.callAPI("", "POST", "/push", b.subscription("/x")); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	// A name is checked when it is dialed.
	if status, text := r.callAPI(token, "POST", "/push", with("endpoint", "https://push.localtest.invalid/x")); status != http.StatusNoContent {
		t.Errorf("a name: %d %s", status, text)
	}
}

// A device keeps its last four subscriptions. Without the device, none are left; the password has none.
func TestPushRevoked(t *testing.T) {
	t.Parallel()
	r, b, token, dev := newPushRig(t)
	for _, path := range []string{"/2", "/3", "/4", "/5", "/5"} {
		r.callAPI(token, "POST", "/push", b.subscription(path))
	}
	paths := func() (out []string) {
		list, err := r.devices.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			for _, s := range d.Push {
				out = append(out, strings.TrimPrefix(s.Endpoint, b.service.URL))
			}
		}
		return out
	}
	if got := paths(); !slices.Equal(got, []string{"/2", "/3", "/4", "/5"}) {
		t.Errorf("subscriptions: %v", got)
	}
	if _, err := r.devices.Revoke(dev.ID); err != nil {
		t.Fatal(err)
	}
	if got := paths(); got != nil {
		t.Errorf("subscriptions of a revoked device: %v", got)
	}
	text, err := os.ReadFile(filepath.Join(r.world.State(), "remote.json"))
	if err != nil || strings.Contains(string(text), b.service.URL) {
		t.Errorf("%v\n%s", err, text)
	}
	mark := r.Mark()
	r.do("POST", "/chats/a/prompt", object{"message": "hello"})
	r.Await(mark, "the end", fake.Contains("chat/statusChanged", `"idle"`))
	time.Sleep(300 * time.Millisecond)
	if n := b.requests.Load(); n > 0 {
		t.Errorf("%d notifications to a revoked device", n)
	}
}

// Notifications are off unless the user turns them on. The key is created once, readable by the user
// only, and the same for all devices.
func TestPushKey(t *testing.T) {
	t.Parallel()
	off := newRig(t, "default: {steps: [{text: Hello.}]}\n", nil, nil)
	for method, status := range map[string]int{"GET": 404, "POST": 404} {
		if got, text := off.do(method, "/push", newBrowser(t).subscription("/x")); got != status || !strings.Contains(text, "remote.push") {
			t.Errorf("%s while it is off: %d %s", method, got, text)
		}
	}
	r := newRig(t, "default: {steps: [{text: Hello.}]}\n", object{"remote": object{"push": true, "password": "correct horse battery"}}, nil)
	watch, _ := r.pair(remote.Watch)
	_, first := r.callAPI(watch, "GET", "/push", nil)
	_, again := r.do("GET", "/push", nil)
	var answer struct{ Key string }
	if err := json.Unmarshal([]byte(first), &answer); err != nil || first != again {
		t.Fatalf("%s and %s: %v", first, again, err)
	}
	if point, err := base64.RawURLEncoding.DecodeString(answer.Key); err != nil || len(point) != 65 {
		t.Errorf("%s: %v", first, err)
	}
	info, err := os.Stat(filepath.Join(r.world.State(), "remote.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}
	if status, text := r.callAPI("correct horse battery", "POST", "/push", newBrowser(t).subscription("/x")); status != http.StatusForbidden {
		t.Errorf("with the password: %d %s", status, text)
	}
}
