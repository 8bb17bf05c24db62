package llm

// Source says where a fact comes from. It is shown to users.
type Source string

// Sources of facts; those of llm/catalog have a name of their own.
const (
	FromConfig   Source = "config"
	FromProvider Source = "provider" // its own list of models
	Assumed      Source = "assumed"  // not stated; holds for most
)

// Fact is something that is known about a model. Without a source it is unknown.
type Fact[T any] struct {
	Value  T      `json:"value"`
	Source Source `json:"source"`
}

// Known says whether somebody knows the fact.
func (f Fact[T]) Known() bool { return f.Source != "" }

// fill takes a fact from another place if it is unknown.
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
	Images    Fact[bool] `json:"images,omitzero"` // takes images
	Tools     Fact[bool] `json:"tools,omitzero"`  // calls tools
}

// Fill takes from o what is unknown.
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

// WithoutCosts returns the facts that do not depend on who serves the model.
func (f Facts) WithoutCosts() Facts {
	f.InputCost, f.OutputCost, f.CacheReadCost, f.CacheWriteCost = Fact[float64]{}, Fact[float64]{}, Fact[float64]{}, Fact[float64]{}
	return f
}
