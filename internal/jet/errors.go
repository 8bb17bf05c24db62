package jet

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that callers distinguish.
var (
	ErrConflict = errors.New("another message came first")
	ErrNotFound = errors.New("not found")
)

// Error codes of JetStream's API for which the library has no constants.
const (
	noSuitableServers jetstream.ErrorCode = 10005 // for the requested number of replicas
	notAvailable      jetstream.ErrorCode = 10008 // no leader has been elected yet
	noResources       jetstream.ErrorCode = 10023
	notClustered      jetstream.ErrorCode = 10074 // a single server cannot have replicas
	storeFailed       jetstream.ErrorCode = 10077 // one of several errors; the text tells which
)

// errorCode is the code of JetStream's API, 0 for other errors.
func errorCode(err error) jetstream.ErrorCode {
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	var older *nats.APIError // from the older API, which watchers and object stores still use
	if errors.As(err, &older) {
		return jetstream.ErrorCode(older.ErrorCode)
	}
	return 0
}

// isConflict reports whether a message was refused because another one came first.
func isConflict(err error) bool {
	switch errorCode(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return true
	case storeFailed:
		return strings.Contains(err.Error(), "per subject")
	}
	return false
}

// isPermanent reports whether a retry cannot help.
func isPermanent(err error) bool {
	switch errorCode(err) {
	case jetstream.JSErrCodeStreamMessageExceedsMaximum, jetstream.JSErrCodeStreamNotFound:
		return true
	}
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed)
}

// IsOutage reports whether an error is typical of servers that restart or elect a leader: they
// answer late or not at all, or the answer is that they are not ready.
func IsOutage(err error) bool {
	for _, one := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, jetstream.ErrNoStreamResponse} {
		if errors.Is(err, one) {
			return true
		}
	}
	code := errorCode(err)
	return code == noSuitableServers || code == notAvailable
}

// OutageTime limits how long RetryOutages retries.
const OutageTime = time.Minute

// RetryOutages retries an operation until it succeeds, fails for another reason than an outage,
// or OutageTime has passed. what names the operation in the log.
func (c *Conn) RetryOutages(ctx context.Context, what string, op func() error) error {
	for begin := time.Now(); ; Pause(ctx, time.Second) {
		err := op()
		if err == nil || ctx.Err() != nil || time.Since(begin) > OutageTime || !IsOutage(err) {
			return err
		}
		c.log.Info("NATS does not answer; trying again", "what", what, "err", err)
	}
}

// notFound converts the library's errors about missing objects to ErrNotFound.
func notFound(err error) error {
	for _, one := range []error{jetstream.ErrMsgNotFound, jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound, jetstream.ErrBucketNotFound, jetstream.ErrKeyNotFound, jetstream.ErrObjectNotFound, jetstream.ErrNoKeysFound} {
		if errors.Is(err, one) {
			return errors.Join(ErrNotFound, err)
		}
	}
	return err
}
