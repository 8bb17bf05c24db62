package llm

import "github.com/seed-dec29ce4/eca/auth"

// Provider is the information about a provider for users (eca-protocol 4.11). It holds no
// secret.
type Provider struct {
	ID          string
	Spelled     string // the ID as the user's files write it
	Label       string // what people call it; empty if that is the ID
	Configured  bool   // the configuration names it
	Auth        auth.Status
	Methods     []auth.Method // ways to log in
	API         string
	URL         string // without user, password and query
	FetchModels *bool
	Headers     []string        // names of the extra headers, sorted
	Missing     string          // what it needs before it can be used; empty if it can be
	Unlisted    string          // why it could not be asked for its models; empty if it answered or was not asked
	Refused     bool            // it does not accept the key that it was asked with
	Asking      bool            // it is being asked for its models
	Models      []ProviderModel // those that can be used now, sorted by name
}

// ProviderModel is one model of a provider.
type ProviderModel struct {
	Name string
	Facts
	Server ServerTools // that it may use
}
