package runtime

import (
	"fmt"
	"path/filepath"
	"strings"
)

// maxSeconds is the largest time limit in seconds: one year, which fits into a time.Duration.
const maxSeconds = 365 * 24 * 3600

// seconds reads a time limit in seconds, above 0.
func (d *decoder) seconds(n *node, path string) float64 {
	v := d.amount(n, path)
	if v == nil {
		return 0
	}
	if *v == 0 || *v > maxSeconds {
		d.problem(n, path, "must be a number of seconds above 0, at most %d", maxSeconds)
		return 0
	}
	return *v
}

// constraints reads the constraints of a step. Unknown keys are only a warning, because manifest v1
// allows any.
func (d *decoder) constraints(n *node, path string) (c Constraints) {
	for _, k := range n.keys {
		at := join(path, k.name)
		switch k.name {
		case "timeout_s":
			c.TimeoutS = d.seconds(k.value, at)
		case "forbidden_tools":
			c.ForbiddenTools = d.texts(k.value, at)
		case "max_tool_calls":
			c.MaxToolCalls = d.count(k.value, at)
		case "max_tokens":
			c.MaxTokens = d.count(k.value, at)
		case "max_cost_usd":
			c.MaxCostUSD = d.amount(k.value, at)
		case "checks":
			for i, g := range d.items(k.value, at) {
				c.Checks = append(c.Checks, d.grader(g, join(at, i), true))
			}
		case "scenario": // read by step
		default:
			d.warn(&node{line: k.line, col: k.col}, at, "the constraint is not known and has no effect")
		}
	}
	return c
}

func (d *decoder) setup(n *node, path string) (s Setup) {
	n = d.mapping(n, path)
	d.only(n, path, "id", "aliases", "workspace", "environment", "tests", "config", "dataset", "id_field", "repeat", "timeout_s")
	if v := n.get("id"); v != nil {
		s.ID = d.name(v, join(path, "id"))
		d.unique(v, join(path, "id"), s.ID)
	}
	if v := n.get("aliases"); v != nil {
		s.Aliases = d.texts(v, join(path, "aliases"))
	}
	if v := n.get("id_field"); v != nil {
		s.IDField = d.name(v, join(path, "id_field"))
	}
	if v := n.get("workspace"); v != nil {
		s.Workspace = d.fixture(v, join(path, "workspace"))
	}
	d.setupTests(n, path, &s)
	if v := n.get("config"); v != nil {
		s.Config, _ = d.mapping(v, join(path, "config")).value().(map[string]any)
	}
	if v := n.get("dataset"); v != nil {
		s.Dataset = d.name(v, join(path, "dataset"))
		if ext := strings.ToLower(filepath.Ext(s.Dataset)); s.Dataset != "" && ext != ".csv" && ext != ".jsonl" {
			d.problem(v, join(path, "dataset"), "must be a .csv or a .jsonl file")
		}
	}
	if v := d.count(n.get("repeat"), join(path, "repeat")); v != nil {
		s.Repeat = *v
		if *v < 1 || *v > MaxRepeat {
			d.problem(n.get("repeat"), join(path, "repeat"), "must be 1 to %d", MaxRepeat)
		}
	}
	s.TimeoutS = d.seconds(n.get("timeout_s"), join(path, "timeout_s"))
	return s
}

// unique reports an id that an earlier scenario already has.
func (d *decoder) unique(n *node, path, id string) {
	if line, taken := d.ids[id]; taken {
		d.problem(n, path, "the scenario in line %d already has the id %q; each scenario needs its own, because results are found by it", line, id)
	}
	if d.ids == nil {
		d.ids = map[string]int{}
	}
	d.ids[id] = n.line
}

// fixture reads the name of a folder, or a mapping with copy and git.
func (d *decoder) fixture(n *node, path string) *Fixture {
	f := &Fixture{}
	if n.kind == kindString {
		f.Copy = n.text
		return f
	}
	n = d.mapping(n, path)
	d.only(n, path, "copy", "git")
	if v := n.get("copy"); v != nil {
		f.Copy = d.name(v, join(path, "copy"))
	}
	if v := d.boolean(n.get("git"), join(path, "git")); v != nil {
		f.Git = *v
	}
	return f
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
			if m.Checks() && !st.checks() && j == len(sc.Steps)-1 {
				d.warn(list.list[i].get("steps").list[j], fmt.Sprintf("%s.steps.%d", path, j), "the last step is not checked")
			}
		}
	}
}
