package llm

// Source is where a fact comes from. It is shown to users.
type Source string

// Sources of facts. llm/catalog has further ones.
const (
	FromConfig   Source = "config"
	FromProvider Source = "provider" // the provider's list of models
	Assumed      Source = "assumed"  // no source has the fact; the value is right for most models
)

// Fact is one fact about a model. It is unknown if it has no source.
type Fact[T any] struct {
	Value  T      `json:"value"`
	Source Source `json:"source"`
}

// Known reports whether the fact is known.
func (f Fact[T]) Known() bool { return f.Source != "" }

// ListedTokens is a number of tokens in a provider's list of models; it is unknown unless it is above 0.
func ListedTokens(n int64) Fact[int64] {
	if n <= 0 {
		return Fact[int64]{}
	}
	return Fact[int64]{Value: n, Source: FromProvider}
}

// fill sets the fact to o if it is unknown.
func (f *Fact[T]) fill(o Fact[T]) {
	if !f.Known() {
		*f = o
	}
}

// Facts is what is known about a model.
type Facts struct {
	Context Fact[int64] `json:"context,omitzero"` // tokens of request and answer together
	Output  Fact[int64] `json:"output,omitzero"`  // tokens of an answer

	// Prices in dollars per million tokens.
	InputCost      Fact[float64] `json:"inputCost,omitzero"`
	OutputCost     Fact[float64] `json:"outputCost,omitzero"`
	CacheReadCost  Fact[float64] `json:"cacheReadCost,omitzero"`
	CacheWriteCost Fact[float64] `json:"cacheWriteCost,omitzero"`

	// Capabilities.
	Reasoning Fact[bool] `json:"reasoning,omitzero"`
	Images    Fact[bool] `json:"images,omitzero"` // accepts images
	Tools     Fact[bool] `json:"tools,omitzero"`  // calls tools
}

// Fill sets unknown facts to those of o.
func (f *Facts) Fill(o Facts) {
	f.Context.fill(o.Context)
	f.Output.fill(o.Output)
	f.InputCost.fill(o.InputCost)
	f.OutputCost.fill(o.OutputCost)
	f.CacheReadCost.fill(o.CacheReadCost)
	f.CacheWriteCost.fill(o.CacheWriteCost)
	f.Reasoning.fill(o.Reasoning)
	f.Images.fill(o.Images)
	f.Tools.fill(o.Tools)
}

// WithoutCosts returns the facts that do not depend on the provider.
func (f Facts) WithoutCosts() Facts {
	f.InputCost, f.OutputCost, f.CacheReadCost, f.CacheWriteCost = Fact[float64]{}, Fact[float64]{}, Fact[float64]{}, Fact[float64]{}
	return f
}
