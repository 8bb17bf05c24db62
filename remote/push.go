package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/webpush"
	"github.com/seed-dec29ce4/eca/tools"
)

// PushService sends messages to addresses that clients chose; fetch.Poster implements it.
type PushService interface {
	// Check returns an error if Post would refuse an address.
	Check(address string) error
	// Post sends a body and returns the status of the answer.
	Post(ctx context.Context, address string, header http.Header, body []byte) (status int, err error)
}

const (
	maxSubscriptions = 4 // of a device
	maxPushes        = 8 // notifications to a device at the same time; further ones are dropped
	maxWatched       = 64
	pushLife         = 12 * time.Hour // how long push services keep a notification for a device that is offline
	// turnPatience is how long to wait for the turn of a prompt. A refused prompt begins no turn.
	turnPatience = time.Minute
	// contact identifies the sender to push services. Some refuse messages without it.
	contact = "https://github.com/seed-dec29ce4/eca"
)

// pushPauses are the pauses before each attempt to send a notification.
func pushPauses() []time.Duration { return []time.Duration{0, 2 * time.Second, 10 * time.Second} }

// pushSubscription is a browser's subscription to the chats of a workspace.
type pushSubscription struct {
	webpush.Subscription
	Roots []string `json:"roots"`
}

// pushKey returns the key that identifies this machine to push services. The first call creates it.
func (d *Devices) pushKey() (webpush.Key, error) {
	d.mu.Lock()
	r, err := d.read()
	d.mu.Unlock()
	if err != nil {
		return webpush.Key{}, err
	}
	text := r.PushKey
	if text == "" {
		key, err := webpush.NewKey()
		if err != nil {
			return webpush.Key{}, err
		}
		created, err := key.Text()
		if err != nil {
			return webpush.Key{}, err
		}
		if err := d.update(func(r *record) {
			if r.PushKey == "" { // else another process was faster
				r.PushKey = created
			}
			text = r.PushKey
		}); err != nil {
			return webpush.Key{}, err
		}
	}
	return webpush.ParseKey(text)
}

// subscribe adds a subscription to a device, in place of its oldest one if there are too many. A browser
// that was paired again keeps its subscription, which then belongs to the new device.
func (d *Devices) subscribe(deviceID string, s pushSubscription) error {
	return d.update(func(r *record) {
		r.unsubscribe(s.Endpoint)
		for i, dev := range r.Devices {
			if dev.ID == deviceID {
				list := append(slices.Clone(dev.Push), s)
				r.Devices[i].Push = list[max(0, len(list)-maxSubscriptions):]
			}
		}
	})
}

// unsubscribe removes a subscription.
func (d *Devices) unsubscribe(endpoint string) error {
	return d.update(func(r *record) { r.unsubscribe(endpoint) })
}

func (r *record) unsubscribe(endpoint string) {
	for i, dev := range r.Devices {
		r.Devices[i].Push = slices.DeleteFunc(slices.Clone(dev.Push), func(s pushSubscription) bool { return s.Endpoint == endpoint })
	}
}

// subscribed reports whether a device still has a subscription.
func (d *Devices) subscribed(dev Device, endpoint string) bool {
	list, err := d.List()
	return err == nil && slices.ContainsFunc(list, func(o Device) bool {
		return o.ID == dev.ID && slices.ContainsFunc(o.Push, func(s pushSubscription) bool { return s.Endpoint == endpoint })
	})
}

// errPushOff is the answer to devices that want notifications while they are off.
var errPushOff = &failure{http.StatusNotFound, "push_off", "notifications are off; remote.push turns them on"}

// pushEnabled reports whether devices may subscribe to notifications.
func pushEnabled(o Options) bool { return o.Push != nil && o.Config().Remote.Push }

// pushKey returns the key that a browser needs to subscribe.
func (f api) pushKey(*call) (any, error) {
	if !pushEnabled(f.opts) {
		return nil, errPushOff
	}
	key, err := f.devices.pushKey()
	if err != nil {
		return nil, err
	}
	public, err := key.Public()
	return map[string]string{"key": public}, err
}

// subscribe subscribes a browser of the device to notifications about this workspace's chats.
func (f api) subscribe(c *call) (any, error) {
	s := pushSubscription{Roots: f.opts.Roots()}
	s.Endpoint = c.text("endpoint")
	_ = json.Unmarshal(c.body["keys"], &s.Keys) // Check finds what is missing
	switch {
	case !pushEnabled(f.opts):
		return nil, errPushOff
	case c.device.ID == passwordDevice:
		return nil, &failure{http.StatusForbidden, "forbidden", "only a paired device can get notifications, not the password"}
	}
	if err := s.Check(); err != nil {
		return nil, badRequest(err.Error())
	}
	if f.opts.Push.Check(s.Endpoint) != nil {
		return nil, badRequest("the endpoint is not an https address of a public host")
	}
	return nil, f.devices.subscribe(c.device.ID, s)
}

// unsubscribe ends a subscription. It works while notifications are off, too.
func (f api) unsubscribe(c *call) (any, error) {
	endpoint := c.text("endpoint")
	if endpoint == "" {
		return nil, badRequest("endpoint is missing")
	}
	return nil, f.devices.unsubscribe(endpoint)
}

// pushes records which turns and notifications are being handled.
type pushes struct {
	mu      sync.Mutex           // guards the fields below
	turns   map[string]event.Seq // by chat: the position of the last turn that a goroutine has claimed
	pending map[string]int       // by device: the notifications that are being sent
}

// claim reports whether the caller is the first to claim the turn that began at a position. Only this
// caller notifies devices about the turn.
func (p *pushes) claim(chatID string, began event.Seq) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns == nil {
		p.turns = map[string]event.Seq{}
	}
	if p.turns[chatID] >= began {
		return false
	}
	p.turns[chatID] = began
	return true
}

// reserve reports whether one more notification may be sent to a device. If so, the caller must call
// release when it was sent.
func (p *pushes) reserve(deviceID string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil {
		p.pending = map[string]int{}
	}
	if p.pending[deviceID] >= maxPushes {
		return false
	}
	p.pending[deviceID]++
	return true
}

func (p *pushes) release(deviceID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[deviceID]--; p.pending[deviceID] == 0 {
		delete(p.pending, deviceID)
	}
}

// notifier notifies devices about turns.
type notifier struct{ *Face }

// promptedChat is a chat that gets a prompt, and the position in its log at which the prompt will be.
type promptedChat struct {
	session *chat.Session
	from    event.Seq
}

// notifyDevices notifies devices about the turns of all chats until stop is called.
func (f notifier) notifyDevices(ctx context.Context) (stop func()) {
	prompts := make(chan promptedChat, maxWatched)
	subscription := f.opts.Engine.Subscribe(func(n chat.News) {
		if n.Kind != chat.ChatBegun && n.Kind != chat.ChatPrompted || !pushEnabled(f.opts) {
			return
		}
		if session, ok := f.opts.Engine.Lookup(n.ChatID); ok {
			select {
			case prompts <- promptedChat{session, session.Next()}:
			default:
			}
		}
	})
	f.work.Go(func() {
		for {
			select {
			case p := <-prompts:
				f.work.Go(func() { f.watchTurn(ctx, p, "") })
			case <-ctx.Done():
				return
			}
		}
	})
	return subscription.Close
}

// watchTurn notifies devices about a turn: the one with the id turn, or the chat's next turn if turn is
// empty.
func (f notifier) watchTurn(ctx context.Context, p promptedChat, turn string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := time.AfterFunc(turnPatience, cancel)
	defer refused.Stop()
	began, state := false, turnState{askUser: map[string]bool{}, waiting: map[string]bool{}}
	children := map[string]bool{} // calls whose subagents are being watched
	for e, err := range p.session.Events(ctx, p.from) {
		if err != nil {
			f.opts.Log.Warn("remote: no notifications about a turn: its chat cannot be read", "chat", p.session.ID(), "err", err)
			return
		}
		if _, starts := e.Body.(event.TurnStarted); starts && !began && (turn == "" || turn == e.Turn) {
			if !f.pushes.claim(p.session.ID(), e.Seq) {
				return
			}
			refused.Stop()
			began, turn = true, e.Turn
		}
		if !began || e.Turn != turn {
			continue
		}
		if kind := state.update(e.Body); kind != "" && (state.running || !chat.IsSubagent(p.session.ID())) {
			f.push(p.session.ID(), kind)
		}
		if b, ok := e.Body.(event.ToolUpdated); ok && b.Details != nil && b.Details.Subagent != nil && !children[b.CallID] {
			if child, ok := f.opts.Engine.Lookup(b.Details.Subagent.ChatID); ok {
				children[b.CallID] = true
				f.work.Go(func() { f.watchTurn(f.ctx, promptedChat{child, 1}, b.CallID) })
			}
		}
		if !state.running {
			return
		}
	}
}

// Kinds of notifications.
const (
	pushApproval = "approval"
	pushQuestion = "question"
	pushFinished = "finished"
	pushFailed   = "failed"
)

// turnState is the part of a turn's state that decides about notifications.
type turnState struct {
	running bool
	askUser map[string]bool // calls of ask_user
	waiting map[string]bool // calls that wait for the user
}

// update applies an event and returns the kind of the notification about it; empty without one.
func (s *turnState) update(b event.Body) string {
	switch b := b.(type) {
	case event.TurnStarted:
		s.running = true
	case event.ToolJudged:
		s.askUser[b.CallID] = b.Server == tools.Native && b.Name == "ask_user"
		if b.Manual {
			return s.wait(b.CallID, pushApproval)
		}
	case event.ToolStarted:
		delete(s.waiting, b.CallID)
		if s.askUser[b.CallID] {
			return s.wait(b.CallID, pushQuestion)
		}
	case event.ToolFinished:
		delete(s.waiting, b.CallID)
	case event.ToolRejected:
		delete(s.waiting, b.CallID)
	case event.TurnFinished:
		s.running = false
		switch b.Reason {
		case event.FinishedLoop, event.FinishedBudget:
			return pushQuestion
		case event.FinishedFailed:
			return pushFailed
		case event.FinishedDone, event.FinishedByHook, event.FinishedBlocked:
			if b.Dialog {
				return pushQuestion
			}
			return pushFinished
		default: // the user stopped the turn, or eca is exiting
		}
	default:
	}
	return ""
}

// wait records a call that waits for the user. It returns kind only if no other call waits already, so
// that several calls cause one notification.
func (s *turnState) wait(callID, kind string) string {
	s.waiting[callID] = true
	if len(s.waiting) > 1 {
		return ""
	}
	return kind
}

// push sends a notification to all devices that subscribed to this workspace. It does not wait.
func (f notifier) push(chatID, kind string) {
	if !pushEnabled(f.opts) {
		return
	}
	roots := f.opts.Roots()
	list, err := f.devices.List()
	if err != nil {
		f.opts.Log.Warn("remote: no notifications are sent", "err", err)
		return
	}
	const longestFolder = 100
	folder := ""
	if len(roots) > 0 {
		folder = shorten.Bytes(filepath.Base(roots[0]), longestFolder)
	}
	text := encode(map[string]string{"kind": kind, "chat": chatID, "folder": folder})
	for _, dev := range list {
		for _, s := range dev.Push {
			if slices.Equal(s.Roots, roots) && f.pushes.reserve(dev.ID) {
				f.work.Go(func() {
					defer f.pushes.release(dev.ID)
					f.deliver(f.ctx, dev, s, text)
				})
			}
		}
	}
}

// deliver sends a notification to a browser, with retries. If the push service reports that the
// subscription has ended, deliver removes it.
func (f notifier) deliver(ctx context.Context, dev Device, s pushSubscription, text []byte) {
	problem := ""
	for _, pause := range pushPauses() {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if !f.devices.subscribed(dev, s.Endpoint) {
			return
		}
		status, err := f.post(ctx, s, text)
		switch {
		case err == nil && status >= 200 && status < 300:
			return
		case status == http.StatusNotFound, status == http.StatusGone:
			if err := f.devices.unsubscribe(s.Endpoint); err != nil {
				f.opts.Log.Warn("remote: an ended subscription is kept", "device", dev.Name, "err", err)
			}
			return
		case err != nil:
			problem = err.Error()
		default:
			problem = http.StatusText(status)
		}
		if err == nil && status < 500 && status != http.StatusTooManyRequests {
			break // the same message would be refused again
		}
	}
	f.opts.Log.Warn("remote: a notification was not delivered", "device", dev.Name, "problem", problem)
}

func (f notifier) post(ctx context.Context, s pushSubscription, text []byte) (status int, err error) {
	key, err := f.devices.pushKey()
	if err != nil {
		return 0, err
	}
	header, body, err := key.Message(s.Subscription, text, contact, pushLife, f.opts.Now())
	if err != nil {
		return 0, err
	}
	return f.opts.Push.Post(ctx, s.Endpoint, header, body)
}
