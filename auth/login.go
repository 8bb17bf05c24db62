package auth

import (
	"context"
	"errors"
	"time"
)

// State says whether a provider can be used. The values are those of eca-protocol 4.11.
type State string

// States of a provider.
const (
	Authenticated   State = "authenticated"
	Expiring        State = "expiring" // within a day, and eca cannot renew it
	Expired         State = "expired"  // the user has to log in again
	Unauthenticated State = "unauthenticated"
	Local           State = "local"       // needs no credential
	NotRunning      State = "not-running" // needs no credential, but does not answer
)

// Source says where a credential comes from (eca-protocol 4.11).
type Source string

// Sources of credentials.
const (
	FromConfig      Source = "config"
	FromLogin       Source = "login"
	FromEnvironment Source = "env"
)

// Status says how a provider is reached.
type Status struct {
	State    State
	Type     string // kind of the credential that is used; empty without one
	Source   Source
	Variable string    // the environment variable it comes from, if it does
	Mode     string    // how the user logged in; empty for keys
	Expires  time.Time // when the token that is used now expires; zero: not known, or never
}

// Usable says whether the provider can be asked.
func (s Status) Usable() bool {
	return s.State == Authenticated || s.State == Expiring || s.State == Local
}

// Actions: what a user does next to log in (eca-protocol 4.11).
const (
	ActionChoose     = "choose-method"
	ActionInput      = "input"
	ActionAuthorize  = "authorize"
	ActionDeviceCode = "device-code"
)

// Step is what a user does next to log in.
type Step struct {
	Action  string
	Methods []Method // of ActionChoose
	Fields  []Field  // of ActionInput; of ActionAuthorize, if something can be pasted
	URL     string   // to open
	Code    string   // of ActionDeviceCode: to enter there
	Message string   // what to do, for the user

	// Wait, if not nil, returns once the login has ended in the background; the notice is
	// something that the user should know. ErrAnswered means that somebody else gets the outcome.
	Wait func(ctx context.Context) (notice string, err error)
}

// ErrAnswered says that a login has ended by what the user entered: the caller that
// passed the input gets the outcome.
var ErrAnswered = errors.New("the login was finished by an input")

// Method is one way to log in to a provider.
type Method struct {
	Key, Label string
}

// Field is something a user enters to log in.
type Field struct {
	Key, Label string
	Secret     bool // not to be shown while it is typed
}

// InvalidError says that what was asked for cannot be: the provider or the method is
// not known, or a value is not usable. The reason never repeats a value.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
