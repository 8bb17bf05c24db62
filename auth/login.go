package auth

// State says whether a provider can be used. The values are those of eca-protocol 4.11.
type State string

// States of a provider.
const (
	Authenticated   State = "authenticated"
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
	Variable string // the environment variable it comes from, if it does
}

// Method is one way to log in to a provider.
type Method struct {
	Key, Label string
}

// Field is something a user enters to log in.
type Field struct {
	Key, Label string
	Secret     bool // not to be shown while it is typed
}

// InvalidError says that what was asked for can not be: the provider or the method is
// not known, or a value is not usable. The reason never repeats a value.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }
