package remote

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// Rights say what a device may do.
type Rights = protocol.Rights

// The rights.
const (
	Watch   = protocol.Watch
	Control = protocol.Control
	Trust   = protocol.Trust
)

// Device is a paired device.
type Device struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Rights  Rights    `json:"rights"`
	Hash    string    `json:"hash"` // of its token: SHA-256, in hex
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
	// Expires is when the token stops working if it has not been used; zero once it has been used.
	Expires time.Time `json:"expires,omitzero"`
	// Push lists the subscriptions of the device's browsers to notifications, the oldest first.
	Push []pushSubscription `json:"push,omitempty"`
}

// Endpoint is the address of a remote server of this user.
type Endpoint struct {
	Roots []string `json:"roots"`
	URL   string   `json:"url"`
	Port  int      `json:"port"`
	PID   int      `json:"pid"` // 0 if the server has ended; the workspace's next server uses the same port
}

// record is the content of the file.
type record struct {
	consent.Format
	Devices   []Device   `json:"devices"`
	Endpoints []Endpoint `json:"endpoints"`
	// PushKey identifies this machine to push services.
	PushKey string `json:"pushKey,omitempty"`
}

// Devices is the file with the paired devices. Several processes share it. It contains the hashes of
// tokens, not the tokens. It must stay private nevertheless, because the key and the subscriptions for
// notifications are secrets.
type Devices struct {
	file consent.File
	now  func() time.Time

	mu     sync.Mutex // guards the fields below
	cached record
	stamp  fs.FileInfo // of the file as it was read
}

const (
	pairingTime = 10 * time.Minute // for the first use of a token
	usedStep    = time.Minute      // the last use is stored at most this often
	maxDevices  = 100
)

// OpenDevices returns the devices that are stored in a folder. It does not read or write the file yet.
func OpenDevices(stateDir string, now func() time.Time) *Devices {
	return &Devices{now: now, file: consent.File{
		Path: filepath.Join(stateDir, "remote.json"), What: "the paired devices", Lost: "all devices have to be paired again",
	}}
}

// read returns the current content. mu is held.
func (d *Devices) read() (record, error) {
	info, err := os.Stat(d.file.Path)
	if err == nil && d.stamp != nil && safeio.Same(d.stamp, info) {
		return d.cached, nil
	}
	var r record
	if err := d.file.Read(&r); err != nil {
		return record{}, err
	}
	d.cached, d.stamp = r, info // the stamp is nil if there is no file
	return r, nil
}

// update changes the file, which other processes may change as well.
func (d *Devices) update(change func(*record)) error {
	var r record
	err := d.file.Change(&r, func() { change(&r) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stamp = nil
	return err
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Pair adds a device and returns its token, which must be used within ten minutes.
func (d *Devices) Pair(name string, rights Rights) (token string, dev Device, err error) {
	token = rand.Text() // 128 random bits at least
	now := d.now().UTC()
	dev = Device{ID: rand.Text()[:6], Name: name, Rights: rights, Hash: hashOf(token), Created: now, Expires: now.Add(pairingTime)}
	full := false
	err = d.update(func(r *record) {
		r.Devices = slices.DeleteFunc(r.Devices, func(old Device) bool { return old.expired(now) })
		if full = len(r.Devices) >= maxDevices; !full {
			r.Devices = append(r.Devices, dev)
		}
	})
	if full {
		err = fmt.Errorf("%d devices are paired; revoke one first", maxDevices)
	}
	return token, dev, err
}

func (dev Device) expired(now time.Time) bool { return !dev.Expires.IsZero() && now.After(dev.Expires) }

// List returns the devices, the one that was used last first.
func (d *Devices) List() ([]Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.read()
	list := slices.DeleteFunc(slices.Clone(r.Devices), func(dev Device) bool { return dev.expired(d.now()) })
	slices.SortStableFunc(list, func(a, b Device) int { return cmp.Or(b.Used.Compare(a.Used), b.Created.Compare(a.Created)) })
	return list, err
}

// Revoke removes a device, or all of them if id is empty, and returns how many it removed.
func (d *Devices) Revoke(id string) (n int, err error) {
	err = d.update(func(r *record) {
		before := len(r.Devices)
		r.Devices = slices.DeleteFunc(r.Devices, func(dev Device) bool { return id == "" || dev.ID == id })
		n = before - len(r.Devices)
	})
	return n, err
}

// find returns the device with a token. The first use confirms the pairing.
func (d *Devices) find(token string) (Device, bool) {
	d.mu.Lock()
	r, err := d.read()
	now := d.now().UTC()
	d.mu.Unlock()
	if err != nil || token == "" {
		return Device{}, false
	}
	var found *Device
	hash := []byte(hashOf(token))
	for i := range r.Devices {
		if subtle.ConstantTimeCompare([]byte(r.Devices[i].Hash), hash) == 1 {
			found = &r.Devices[i]
		}
	}
	if found == nil || found.expired(now) {
		return Device{}, false
	}
	dev := *found
	if dev.Expires.IsZero() && now.Sub(dev.Used) < usedStep {
		return dev, true
	}
	first := !dev.Expires.IsZero()
	dev.Used, dev.Expires = now, time.Time{}
	known := false
	err = d.update(func(r *record) {
		for i := range r.Devices {
			if r.Devices[i].ID == dev.ID && r.Devices[i].Hash == dev.Hash {
				r.Devices[i].Used, r.Devices[i].Expires, known = dev.Used, dev.Expires, true
			}
		}
	})
	if err == nil {
		return dev, known
	}
	return dev, !first // a full disk does not lock devices out, but a pairing must be recorded
}

// valid reports whether a device is still paired.
func (d *Devices) valid(dev Device) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.read()
	return err != nil || slices.ContainsFunc(r.Devices, func(o Device) bool { return o.ID == dev.ID && o.Hash == dev.Hash })
}

// Endpoints lists the servers that are listening, and those that have ended.
func (d *Devices) Endpoints() ([]Endpoint, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.read()
	return slices.Clone(r.Endpoints), err
}

// maxEndpoints limits for how many workspaces the port is remembered.
const maxEndpoints = 50

// recordEndpoint records a server in place of the workspace's earlier ones that have ended.
func (d *Devices) recordEndpoint(e Endpoint) error {
	return d.update(func(r *record) {
		r.Endpoints = slices.DeleteFunc(r.Endpoints, func(o Endpoint) bool {
			return slices.Equal(o.Roots, e.Roots) && (o.PID == 0 || o.PID == e.PID)
		})
		r.Endpoints = append(r.Endpoints, e)
		r.Endpoints = r.Endpoints[max(0, len(r.Endpoints)-maxEndpoints):]
	})
}

// lastPort returns the last port of a workspace's server, or 0.
func (d *Devices) lastPort(roots []string) int {
	list, _ := d.Endpoints()
	for _, e := range slices.Backward(list) {
		if slices.Equal(e.Roots, roots) {
			return e.Port
		}
	}
	return 0
}
