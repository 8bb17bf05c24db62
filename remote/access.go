package remote

import (
	"crypto/subtle"
	"encoding/json"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// throttle limits attempts with wrong passwords and tokens, per address and in all.
type throttle struct {
	now func() time.Time

	mu       sync.Mutex // guards failures
	failures map[string][]time.Time
}

const (
	throttlePeriod = time.Minute
	maxFailures    = 10 // of one address
	maxAllFailures = 60
)

// wait returns how long an address has to wait before the server checks its next password; 0 means no
// wait.
func (t *throttle) wait(address string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, all := t.now(), []time.Time{}
	for a, list := range t.failures {
		for len(list) > 0 && now.Sub(list[0]) >= throttlePeriod {
			list = list[1:]
		}
		if t.failures[a] = list; len(list) == 0 {
			delete(t.failures, a)
		}
		all = append(all, list...)
	}
	if own := t.failures[address]; len(own) >= maxFailures {
		return own[len(own)-maxFailures].Add(throttlePeriod).Sub(now)
	}
	if len(all) >= maxAllFailures {
		return throttlePeriod
	}
	return 0
}

func (t *throttle) recordFailure(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures == nil {
		t.failures = map[string][]time.Time{}
	}
	t.failures[address] = append(t.failures[address], t.now())
}

// passwordDevice is the id of the device that stands for everyone who knows the password.
const passwordDevice = "password"

// authenticate returns the device that sent a request.
func (f *Face) authenticate(w http.ResponseWriter, r *http.Request) (Device, *failure) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	dev, wait, ok := f.identify(r.RemoteAddr, token)
	switch {
	case ok:
		return dev, nil
	case wait > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		return Device{}, &failure{http.StatusTooManyRequests, "too_many_failures", "too many wrong passwords; try again later"}
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	return Device{}, &failure{http.StatusUnauthorized, "unauthorized", "the password or token is missing or wrong"}
}

// identify returns the device with a token. It accepts the token of a paired device even while the
// address is throttled, so that an attacker cannot lock out devices. If the address is throttled, wait
// is how long.
func (f *Face) identify(remoteAddress, token string) (dev Device, wait time.Duration, ok bool) {
	if dev, ok := f.devices.find(token); ok {
		return dev, 0, true
	}
	address, _, err := net.SplitHostPort(remoteAddress)
	if err != nil {
		address = remoteAddress
	}
	if wait := f.throttle.wait(address); wait > 0 {
		return Device{}, wait, false
	}
	if dev, ok := f.passwordDevice(token); ok {
		return dev, 0, true
	}
	if token != "" {
		f.throttle.recordFailure(address)
		f.opts.Log.Warn("remote: a wrong password or token", "from", address)
	}
	return Device{}, 0, false
}

// passwordDevice returns the device for remote.password, if token is this password.
func (f *Face) passwordDevice(token string) (Device, bool) {
	password := f.opts.Config().Remote.Password
	if password == "" || token == "" {
		return Device{}, false
	}
	hash := hashOf(token)
	if subtle.ConstantTimeCompare([]byte(hash), []byte(hashOf(password))) != 1 {
		return Device{}, false
	}
	return Device{ID: passwordDevice, Name: "password", Rights: Trust, Hash: hash}, true
}

// stillAuthorized reports whether a device that was authenticated before may still be served.
func (f *Face) stillAuthorized(dev Device) bool {
	if dev.ID == passwordDevice {
		return dev.Hash == hashOf(f.opts.Config().Remote.Password)
	}
	return f.devices.valid(dev)
}

// Admit implements Gate.
func (f *Face) Admit(remoteAddress, token string) bool {
	_, _, ok := f.identify(remoteAddress, token)
	return ok
}

// deviceOf returns the device with a token that was admitted before.
func (f *Face) deviceOf(token string) (Device, bool) {
	if dev, ok := f.devices.find(token); ok {
		return dev, true
	}
	return f.passwordDevice(token)
}

// messageRights returns the rights that a device needs for each message of the page, by method.
func messageRights() map[string]Rights {
	out := map[string]Rights{"host/attach": Watch, "": Control} // messages without a method are answers to questions
	for _, m := range protocol.Methods() {
		if m.Direction == protocol.ToServer {
			out[m.Name] = m.Needs
		}
	}
	return out
}

// Allow implements Gate.
func (f *Face) Allow(token, method string, params []byte) (allowed []byte, ok bool) {
	dev, known := f.deviceOf(token)
	if !known || dev.Rights < f.Needs(method, params) {
		return nil, false
	}
	if method == "chat/prompt" && dev.Rights < Trust {
		params = markLimited(params)
	}
	return params, true
}

// markLimited adds "limited" to the params of a prompt: the prompt is then refused if it would answer
// a dialog, such as a login, that another device has opened in the meantime.
func markLimited(params []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil {
		return params // not a valid prompt
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return normalizedName(name) == "limited" })
	members["limited"] = json.RawMessage("true")
	return encode(members)
}

// normalizedName returns a member's name in lower case and without separators. The protocol accepts all
// spellings with the same result as the same member.
func normalizedName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// Question implements Gate.
func (f *Face) Question(token string, params []byte) (shown []byte, ok bool) {
	dev, _ := f.deviceOf(token)
	shown, _, ok = questionFor(dev.Rights, params)
	return shown, ok
}

// MayAnswer implements Gate.
func (f *Face) MayAnswer(token string, params, answer []byte) bool {
	dev, _ := f.deviceOf(token)
	return mayAnswer(dev.Rights, params, answer)
}

// Needs returns the rights that a device needs to send a message. A message that is not part of the
// protocol needs Trust.
func (f *Face) Needs(method string, params []byte) Rights {
	needed, known := f.rights[method]
	if !known || needed == Control && (grantsPermissions(params) || method == "chat/prompt" && f.changesBeyondChats(params)) {
		return Trust
	}
	return needed
}

// changesBeyondChats reports whether a prompt can change more than chats. Each text in the params is
// checked both as the chat's id and as the prompt's text, because the protocol accepts several spellings
// of these members.
func (f *Face) changesBeyondChats(params []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil {
		return false // not a valid prompt
	}
	for _, value := range members {
		text := string(value)
		_ = json.Unmarshal(value, &text) // ids may be numbers
		if f.opts.Engine.ChangesBeyondChats(text, text) {
			return true
		}
	}
	return false
}

// grantsPermissions reports whether params turn on auto-approve, or approve later calls too. It compares
// the names of members as loosely as the protocol does.
func grantsPermissions(params []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil {
		return false // params that are not an object grant nothing
	}
	for name, value := range members {
		switch normalizedName(name) {
		case "trust", "save", "auto":
			if !slices.Contains([]string{"null", "false", `""`}, string(value)) {
				return true
			}
		}
	}
	return false
}
