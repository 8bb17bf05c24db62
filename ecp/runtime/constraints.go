package runtime

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// maxSeconds is the largest time limit in seconds: one year, which fits into a time.Duration.
const maxSeconds = 365 * 24 * 3600

// seconds reads a time limit in seconds, above 0.
func (e element) seconds() float64 {
	v := e.nonNegativeNumber()
	if v == nil {
		return 0
	}
	if *v == 0 || *v > maxSeconds {
		e.problem("must be a number of seconds above 0 and at most %d", maxSeconds)
		return 0
	}
	return *v
}

// constraintNames are the keys of a step's constraints.
func constraintNames() []string {
	return []string{"timeout_s", "forbidden_tools", "max_tool_calls", "max_tokens", "max_cost_usd", "checks", "scenario"}
}

// meantConstraint returns the constraint that an unknown key probably means, or "".
func meantConstraint(key string) string {
	key = strings.ToLower(strings.ReplaceAll(key, "-", "_"))
	for _, known := range constraintNames() {
		if known == key || strings.HasPrefix(known, key+"_") { // max_cost, timeout
			return known
		}
	}
	return suggest.Nearest(key, constraintNames())
}

// constraints reads the constraints of a step. An unknown key is only a warning, because manifest v1
// allows any key. If it is probably a misspelled constraint, it is an error, because the limit that
// the user meant would have no effect.
func (e element) constraints() (c Constraints) {
	for _, k := range e.keys {
		v := e.child(k.name, k.value)
		switch k.name {
		case "timeout_s":
			c.TimeoutS = v.seconds()
		case "forbidden_tools":
			c.ForbiddenTools = v.texts()
		case "max_tool_calls":
			c.MaxToolCalls = v.nonNegativeInt()
		case "max_tokens":
			c.MaxTokens = v.nonNegativeInt()
		case "max_cost_usd":
			c.MaxCostUSD = v.nonNegativeNumber()
		case "checks":
			for _, g := range v.items() {
				c.Checks = append(c.Checks, g.grader(true))
			}
		case "scenario": // read by step
		default:
			if meant := meantConstraint(k.name); meant != "" {
				e.child(k.name, &node{line: k.line, col: k.col}).problem("unknown constraint; did you mean %s?", meant)
				continue
			}
			e.d.warn(&node{line: k.line, col: k.col}, v.path, "the unknown constraint has no effect")
		}
	}
	return c
}

func (e element) setup() Setup {
	e = e.mapping("id", "aliases", "workspace", "environment", "tests", "config", "dataset", "id_field", "repeat", "timeout_s")
	s := Setup{Aliases: e.get("aliases").texts(), IDField: e.get("id_field").nonEmptyText(), Config: e.get("config").object(), TimeoutS: e.get("timeout_s").seconds()}
	if v := e.get("id"); !v.missing() {
		s.ID = v.nonEmptyText()
		v.checkUniqueID(s.ID)
	}
	if v := e.get("workspace"); !v.missing() {
		s.Workspace = v.fixture()
	}
	e.setupTests(&s)
	v := e.get("dataset")
	s.Dataset = v.nonEmptyText()
	if ext := strings.ToLower(filepath.Ext(s.Dataset)); s.Dataset != "" && ext != ".csv" && ext != ".jsonl" {
		v.problem("must be a .csv or a .jsonl file")
	}
	v = e.get("repeat")
	if s.Repeat = deref(v.nonNegativeInt()); !v.missing() && (s.Repeat < 1 || s.Repeat > MaxRepeat) {
		v.problem("must be 1 to %d", MaxRepeat)
	}
	return s
}

// checkUniqueID reports an id that an earlier scenario already has.
func (e element) checkUniqueID(id string) {
	if line, taken := e.d.ids[id]; taken {
		e.problem("the scenario in line %d already has the id %q; each scenario needs its own, because results are found by it", line, id)
	}
	if e.d.ids == nil {
		e.d.ids = map[string]int{}
	}
	e.d.ids[id] = e.line
}

// fixture reads the name of a folder, or a mapping with copy and git.
func (e element) fixture() *Fixture {
	if e.kind == kindString {
		return &Fixture{Copy: e.node.text}
	}
	e = e.mapping("copy", "git")
	return &Fixture{Copy: e.get("copy").nonEmptyText(), Git: deref(e.get("git").boolean())}
}

func (d *decoder) warnSuspicious(m *Manifest, root *node) {
	list := root.get("scenarios")
	if len(m.Scenarios) == 0 {
		d.warn(list, "scenarios", "there are no scenarios: nothing is checked")
	} else if !m.Checks() {
		d.warn(list, "scenarios", "nothing in this manifest is checked")
	}
	seen := map[string]int{}
	for i, sc := range m.Scenarios {
		path := fmt.Sprintf("scenarios.%d", i)
		at := &node{line: sc.Line, col: 1}
		if name := list.list[i].get("name"); name != nil {
			at = name
		}
		if first, ok := seen[sc.Name]; ok {
			d.warn(at, path+".name", "%q is also the name of scenarios.%d", sc.Name, first)
		} else {
			seen[sc.Name] = i
		}
		for j, st := range sc.Steps {
			if m.Checks() && !st.hasChecks() && j == len(sc.Steps)-1 {
				d.warn(list.list[i].get("steps").list[j], fmt.Sprintf("%s.steps.%d", path, j), "the last step is not checked")
			}
		}
	}
}
