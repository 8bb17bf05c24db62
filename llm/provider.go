package llm

import "github.com/seed-dec29ce4/eca/auth"

// Provider is the information about a provider for users (eca-protocol.md 4.11). It contains no
// secrets.
type Provider struct {
	ID             string
	Spelled        string // the ID in the spelling of the user's files
	Label          string // the usual name; empty if that is the ID
	Configured     bool   // it is in the configuration
	Auth           auth.Status
	Methods        []auth.Method // ways to log in
	API            string
	URL            string // without user, password and query
	FetchModels    *bool
	Headers        []string        // names of the extra headers, sorted
	Missing        string          // what it still needs; empty if it can be used
	ListError      string          // why its list of models could not be fetched; empty if it was fetched or not requested
	KeyRefused     bool            // it did not accept the key
	FetchingModels bool            // its list of models is being fetched
	Models         []ProviderModel // usable models, sorted by name
}

// ProviderModel is one model of a provider.
type ProviderModel struct {
	Name string
	Facts
	ServerTools ServerTools // provider tools that the model may use
}
