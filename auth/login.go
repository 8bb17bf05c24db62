package auth

import (
	"context"
	"errors"
	"time"
)

// State says whether a provider can be used. The values are those of eca-protocol.md 4.11.
type State string

// States of a provider.
const (
	Authenticated   State = "authenticated"
	Expiring        State = "expiring" // the login expires within a day, and eca cannot renew it
	Expired         State = "expired"  // the user has to log in again
	Unauthenticated State = "unauthenticated"
	Local           State = "local"       // needs no credential
	NotRunning      State = "not-running" // needs no credential, but does not answer
)

// Source is where a credential comes from (eca-protocol.md 4.11).
type Source string

// Sources of credentials.
const (
	FromConfig      Source = "config"
	FromLogin       Source = "login"
	FromEnvironment Source = "env"
)

// Status describes the access to a provider.
type Status struct {
	State    State
	Type     string // kind of the credential in use; empty without one
	Source   Source
	Variable string    // the environment variable that contains the credential, if any
	Mode     string    // how the user logged in; empty for keys
	Expires  time.Time // when the current token expires; zero if not known, or never
}

// Actions are the kinds of steps of a login (eca-protocol.md 4.11).
const (
	ActionChoose     = "choose-method"
	ActionInput      = "input"
	ActionAuthorize  = "authorize"
	ActionDeviceCode = "device-code"
)

// Step is the user's next step of a login.
type Step struct {
	Action  string
	Methods []Method // for ActionChoose
	Fields  []Field  // for ActionInput, and for ActionAuthorize if the user can paste an address or a code
	URL     string   // the page to open
	Code    string   // for ActionDeviceCode: the code to enter at URL
	Message string   // instructions for the user

	// Wait, if not nil, waits until the login, which continues in the background, has ended. It returns
	// a notice for the user. ErrAnswered means that another caller gets the outcome.
	Wait func(ctx context.Context) (notice string, err error)
}

// ErrAnswered means that the user completed the login by an input, so the caller that passed on this
// input gets the outcome.
var ErrAnswered = errors.New("the login was finished by an input")

// Method is one way to log in to a provider.
type Method struct {
	Key, Label string
}

// Field is a value that a user enters to log in.
type Field struct {
	Key, Label string
	Secret     bool // not to be shown while it is typed
}

// InvalidError reports an unknown provider, an unknown method or an unusable value. The reason
// never contains the value.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
