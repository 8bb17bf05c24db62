package template

import (
	"strings"
	"testing"
)

func vars() Vars {
	return Vars{
		"osName": "Linux", "isSubagent": false, "toolEnabled_eca__read_file": true, "toolEnabled_my-server__x": true,
		"workspaceRoots": []string{"/a", "/b"}, "none": []string{}, "blank": "", "n": 3, "raw": "{{ osName }} <b> & {% if %}",
	}
}

func TestRender(t *testing.T) {
	for source, want := range map[string]string{
		"": "", "plain { } {x} text\r\n": "plain { } {x} text\r\n", "{": "{", "a {": "a {",
		"{{ osName }}|{{osName}}|{{ missing }}|": "Linux|Linux||",
		"{{ raw }}":                              "{{ osName }} <b> & {% if %}",
		"{{ raw|safe }}":                         "{{ osName }} <b> & {% if %}",
		"{{ workspaceRoots }}":                   "/a, /b",
		`{{ workspaceRoots|join:"|" }}`:          "/a|/b",
		`{{ "}}" }}`:                             "}}",
		"{{ workspaceRoots|count }} {{ osName|length }} {{ n }} {{ isSubagent }}":                                      "2 5 3 false",
		"{{ osName|upper|lower|capitalize }}":                                                                          "Linux",
		`{{ missing|default:"x" }}{{ blank|default:"x" }}`:                                                             "x",
		`{{ blank|default-if-empty:osName }}`:                                                                          "Linux",
		`{{ none|default-if-empty:"y" }}{{ n|default-if-empty:"y" }}`:                                                  "y3",
		`{{ osName|replace:"i":"1" }}`:                                                                                 "L1nux",
		"{{ workspaceRoots|first }}{{ workspaceRoots|last }}{{ osName|first }}":                                        "/a/bL",
		"{% if osName %}a{% else %}b{% endif %}":                                                                       "a",
		"{% if isSubagent %}a{% elif missing %}c{% else %}b{% endif %}":                                                "b",
		"{% if isSubagent %}a{% elif n %}c{% endif %}":                                                                 "c",
		"{% if toolEnabled_eca__read_file %}r{% endif %}":                                                              "r",
		"{% if toolEnabled_my-server__x %}r{% endif %}":                                                                "r",
		"{% if toolEnabled_eca__other %}r{% endif %}":                                                                  "",
		"{% if not isSubagent and n %}y{% endif %}":                                                                    "y",
		"{% if missing or isSubagent or n = 3 %}y{% endif %}":                                                          "y",
		"{% if n and missing or osName %}y{% endif %}":                                                                 "y",
		"{% if all osName n %}y{% endif %}{% if any blank none missing %}z{% endif %}":                                 "y",
		`{% if osName == "Linux" %}y{% endif %}{% if osName != "Linux" %}z{% endif %}`:                                 "y",
		`{% if n > 2 %}a{% endif %}{% if n >= 4 %}b{% endif %}{% if n < "x" %}c{% endif %}{% if n <= 3 %}d{% endif %}`: "ad",
		`{% ifequal osName "Linux" %}y{% else %}n{% endifequal %}`:                                                     "y",
		`{% ifunequal osName "Linux" %}y{% else %}n{% endifunequal %}`:                                                 "n",
		"{% for r in workspaceRoots %}{{ forloop.counter }}{{ r }}{% if not forloop.last %},{% endif %}{% endfor %}":   "1/a,2/b",
		"{% for r in none %}x{% empty %}e{% endfor %}{% for r in osName %}x{% endfor %}":                               "e",
		"{% for a in workspaceRoots %}{% for b in workspaceRoots %}{{ a }}{{ b }} {% endfor %}{% endfor %}":            "/a/a /a/b /b/a /b/b ",
		"a{# {{ x }} {% if %} #}b{% comment %}{{ {% if x %}{% endcomment %}c":                                          "abc",
		"{% verbatim %}{{ osName }}{% if %}{% endverbatim %}":                                                          "{{ osName }}{% if %}",
		"{% safe %}{{ raw }}{% endsafe %}":                                                                             "{{ osName }} <b> & {% if %}",
		"{% if\n  n\n%}y{% endif %}":                                                                                   "y",
	} {
		got, err := Text(source, vars())
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", source, got, err, want)
		}
	}
}

// A text that is not a template is used as it is, and the error says where and why.
func TestBroken(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{{ x":                       "line 2: {{ without }}",
		"{{ }}":                         "neither a name nor a value",
		"{{ a\nb }}":                    "next line",
		"{{ a b }}":                     "neither a name nor a value",
		"{{ system(\"x\") }}":           "neither a name nor a value",
		"{{ x|exec }}":                  `no filter "exec"`,
		"{{ x|upper:1 }}":               `no filter "upper" with 1`,
		"{% include \"/etc/passwd\" %}": `no tag "include"`,
		"{% script x %}":                `no tag "script"`,
		"{% %}":                         `no tag ""`,
		"{% if %}x{% endif %}":          "needs a condition",
		"{% if a b %}x{% endif %}":      "is not a condition",
		"{% if a and %}x{% endif %}":    "is not a condition",
		"{% if \"a %}x{% endif %}":      "{% without %}",
		"{% if a %}x":                   "endif %} is missing",
		"{% if a %}x{% endfor %}":       "does not belong",
		"{% if a %}{% else %}{% else %}{% endif %}":   "does not belong",
		"{% if a %}{% else %}{% elif b %}{% endif %}": "does not belong",
		"{% ifequal a %}{% endifequal %}":             "two values",
		"{% for a %}{% endfor %}":                     "a loop is",
		"{% for in in in %}{% endfor %}":              "a loop is",
		"{% for a in b %}x":                           "endfor %} is missing",
		"{% comment %}x":                              "endcomment %} is missing",
		"x{% endif %}":                                "without a beginning",
		"{# x":                                        "{# without #}",
		strings.Repeat("{% if a %}", 60):              "within each other",
		strings.Repeat("x", maxSource) + "{{ x }}":    "bytes",
	} {
		got, err := Text(source, vars())
		if err == nil || !strings.Contains(err.Error(), want) || got != source {
			t.Errorf("%.80q: %v, want %q", source, err, want)
		}
	}
}

// A template that needs too many steps or makes too much output fails.
func TestBounds(t *testing.T) {
	many := make([]string, 1000)
	huge := strings.Repeat("x", maxOutput)
	for source, want := range map[string]string{
		"{% for a in many %}{% for b in many %}{% for c in many %}{% endfor %}{% endfor %}{% endfor %}": "steps",
		"{{ huge }}{{ huge }}": "bytes",
		`{{ huge|replace:"x":huge }}{{ many|join:huge }}{{ huge }}`: "bytes",
	} {
		if _, err := Text(source, Vars{"many": many, "huge": huge}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", source, err)
		}
	}
}

func TestReads(t *testing.T) {
	p, err := Parse(`{{ a|default:b }}{% if not c.d or "e" = 1 %}{% for x in f %}{{ x }}{% endfor %}{% endif %}{% verbatim %}{{ g }}{% endverbatim %}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "c.d": true, "e": false, "f": true, "g": false} {
		if p.Reads(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A valid template renders within the bounds; other text stays as it is. Text without marks
// is never changed, and values are never read as templates.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "{{ a }}", `{{ a|default:"x"|upper }}`, "{% if a and not b %}x{% elif c = 1 %}y{% else %}z{% endif %}", "{% for x in l %}{{ x }}{% empty %}e{% endfor %}", "{# c #}{% comment %}{% endcomment %}{% verbatim %}{{{% endverbatim %}"} {
		f.Add(s, "{{ l }}")
	}
	f.Fuzz(func(t *testing.T, source, value string) {
		got, err := Text(source, Vars{"a": value, "l": []string{value, "2"}, "b": true, "c": 1})
		switch {
		case err != nil && got != source:
			t.Fatalf("a broken template was changed: %q", got)
		case len(got) > max(maxOutput, len(source)):
			t.Fatalf("%d bytes", len(got))
		case !strings.Contains(source, "{") && got != source:
			t.Fatalf("plain text was changed: %q", got)
		}
		if out, err := Text("{{ a }}", Vars{"a": value}); err != nil || len(value) < maxOutput && out != value {
			t.Fatalf("a value was changed: %q, %v", out, err)
		}
	})
}
