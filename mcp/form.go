package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// form is what a server wants to know from the user (elicitation in form mode): a flat
// object of texts, numbers, truth values and choices.
type form struct{ fields []field }

// Limits of forms.
const (
	maxFields  = 20
	maxChoices = 50
	maxAnswer  = 16 << 10 // bytes
)

// field is one member of the object.
type field struct {
	name     string
	title    string
	about    string
	kind     fieldKind
	required bool
	preset   any // the default; nil: there is none
	choices  []choice

	least, most *float64 // of a number, of a text's characters, or of choices
	format      string   // of a text
}

type fieldKind string

const (
	textField    fieldKind = "text"
	numberField  fieldKind = "number"
	integerField fieldKind = "integer"
	yesNoField   fieldKind = "boolean"
	oneField     fieldKind = "one" // of the choices
	someField    fieldKind = "some"
)

// choice is a value with what the user is shown for it.
type choice struct{ value, label string }

// property is a field as JSON Schema has it.
type property struct {
	Type        string    `json:"type"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Default     any       `json:"default"`
	Enum        []string  `json:"enum"`
	EnumNames   []string  `json:"enumNames"`
	OneOf       []titled  `json:"oneOf"`
	AnyOf       []titled  `json:"anyOf"`
	MinLength   *float64  `json:"minLength"`
	MaxLength   *float64  `json:"maxLength"`
	Minimum     *float64  `json:"minimum"`
	Maximum     *float64  `json:"maximum"`
	MinItems    *float64  `json:"minItems"`
	MaxItems    *float64  `json:"maxItems"`
	Format      string    `json:"format"`
	Items       *property `json:"items"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// readForm reads the schema that a server sends. The error says what eca can not ask.
func readForm(raw json.RawMessage) (form, error) {
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	var members struct {
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return form{}, fmt.Errorf("requestedSchema can not be read: %w", err)
	}
	_ = json.Unmarshal(raw, &members) // as above
	switch {
	case schema.Type != "object":
		return form{}, errors.New("requestedSchema must be of type object")
	case len(schema.Properties) > maxFields:
		return form{}, fmt.Errorf("requestedSchema may have %d properties", maxFields)
	}
	var out form
	for _, name := range keysInOrder(members.Properties) {
		if slices.ContainsFunc(out.fields, func(f field) bool { return f.name == name }) {
			continue // twice the same key
		}
		var p property
		if err := json.Unmarshal(schema.Properties[name], &p); err != nil {
			return form{}, fmt.Errorf("the property %.100q can not be read: %w", name, err)
		}
		f, err := p.field(name)
		if err != nil {
			return form{}, fmt.Errorf("the property %.100q %w", name, err)
		}
		f.required = slices.Contains(schema.Required, name)
		out.fields = append(out.fields, f)
	}
	return out, nil
}

// keysInOrder lists the keys of an object as they are written: users are asked in that
// order.
func keysInOrder(object json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(object))
	var out []string
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var skipped json.RawMessage
		if err != nil || !ok || d.Decode(&skipped) != nil {
			return out
		}
		out = append(out, name)
	}
	return out
}

func (p property) field(name string) (field, error) {
	f := field{name: name, title: p.Title, about: p.Description, preset: p.Default, format: p.Format}
	switch p.Type {
	case "string":
		f.kind, f.least, f.most = textField, p.MinLength, p.MaxLength
		f.choices = p.options()
		if len(f.choices) > 0 {
			f.kind = oneField
		}
	case "number":
		f.kind, f.least, f.most = numberField, p.Minimum, p.Maximum
	case "integer":
		f.kind, f.least, f.most = integerField, p.Minimum, p.Maximum
	case "boolean":
		f.kind = yesNoField
	case "array":
		if p.Items != nil {
			f.choices = p.Items.options()
		}
		if len(f.choices) == 0 {
			return field{}, errors.New("is a list of what can not be chosen from")
		}
		f.kind, f.least, f.most = someField, p.MinItems, p.MaxItems
	default:
		return field{}, fmt.Errorf("has a type that is not asked for: %.50q", p.Type)
	}
	if len(f.choices) > maxChoices {
		return field{}, fmt.Errorf("has more than %d choices", maxChoices)
	}
	if f.preset != nil && !f.takes(f.preset) {
		f.preset = nil // a default that is no answer helps nobody
	}
	return f, nil
}

// options are the values to choose from, in any of the forms that versions of the protocol
// have.
func (p property) options() []choice {
	var out []choice
	for i, value := range p.Enum {
		c := choice{value, value}
		if i < len(p.EnumNames) && p.EnumNames[i] != "" {
			c.label = p.EnumNames[i]
		}
		out = append(out, c)
	}
	for _, t := range slices.Concat(p.OneOf, p.AnyOf) {
		c := choice{t.Const, t.Title}
		if c.label == "" {
			c.label = t.Const
		}
		out = append(out, c)
	}
	return out
}

// takes says whether a value answers a field.
func (f field) takes(value any) bool {
	switch v := value.(type) {
	case bool:
		return f.kind == yesNoField
	case float64:
		return (f.kind == numberField || f.kind == integerField && v == math.Trunc(v)) && f.within(v) == nil
	case string:
		if f.kind == oneField {
			return slices.ContainsFunc(f.choices, func(c choice) bool { return c.value == v })
		}
		return f.kind == textField && f.checkText(v) == nil
	case []any:
		for _, one := range v {
			if text, ok := one.(string); !ok || !slices.ContainsFunc(f.choices, func(c choice) bool { return c.value == text }) {
				return false
			}
		}
		return f.kind == someField && f.within(float64(len(v))) == nil
	}
	return false
}

// read makes a value of what the user answered; the error says what is wrong with it.
func (f field) read(answer string) (any, error) {
	answer = strings.TrimSpace(answer)
	switch f.kind {
	case yesNoField:
		switch strings.ToLower(answer) {
		case "yes", "y", "true":
			return true, nil
		case "no", "n", "false":
			return false, nil
		}
		return nil, errors.New("the answer must be Yes or No")
	case numberField, integerField:
		n, err := strconv.ParseFloat(answer, 64)
		switch {
		case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
			return nil, fmt.Errorf("%q is no number", shorten.Bytes(answer, 100))
		case f.kind == integerField && (n != math.Trunc(n) || math.Abs(n) > 1<<53):
			return nil, fmt.Errorf("%q is no whole number", shorten.Bytes(answer, 100))
		}
		return n, f.within(n)
	case oneField:
		return f.choose(answer)
	case someField:
		return f.chooseSome(answer)
	}
	return answer, f.checkText(answer)
}

// choose finds a choice by what the user sees of it, or by its value.
func (f field) choose(answer string) (string, error) {
	for _, same := range []func(string) bool{
		func(s string) bool { return s == answer },
		func(s string) bool { return strings.EqualFold(s, answer) },
	} {
		for _, c := range f.choices {
			if same(c.label) || same(c.value) {
				return c.value, nil
			}
		}
	}
	return "", fmt.Errorf("%q is none of: %s", shorten.Bytes(answer, 100), f.labels())
}

func (f field) chooseSome(answer string) ([]string, error) {
	out := []string{}
	for part := range strings.SplitSeq(answer, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		value, err := f.choose(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out, f.within(float64(len(out)))
}

func (f field) labels() string {
	var out []string
	for _, c := range f.choices {
		out = append(out, c.label)
	}
	return strings.Join(out, ", ")
}

// within checks a number against the limits.
func (f field) within(n float64) error {
	if f.least != nil && n < *f.least || f.most != nil && n > *f.most {
		return fmt.Errorf("it must be %s", f.limits())
	}
	return nil
}

// limits says what a field takes, as far as that is limited.
func (f field) limits() string {
	what := map[fieldKind]string{textField: " characters", someField: " of them"}[f.kind]
	show := func(n *float64) string { return strconv.FormatFloat(*n, 'f', -1, 64) }
	switch {
	case f.least != nil && f.most != nil:
		return show(f.least) + " to " + show(f.most) + what
	case f.least != nil:
		return "at least " + show(f.least) + what
	case f.most != nil:
		return "at most " + show(f.most) + what
	}
	return ""
}

// checkText checks a text against its limits and format.
func (f field) checkText(text string) error {
	if len(text) > maxAnswer {
		return fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err := f.within(float64(utf8.RuneCountInString(text))); err != nil {
		return err
	}
	var err error
	switch f.format {
	case "email":
		var a *mail.Address
		if a, err = mail.ParseAddress(text); err == nil && a.Address != text {
			err = errors.New("it has more than the address")
		}
	case "uri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && u.Scheme == "" {
			err = errors.New("it has no scheme")
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return fmt.Errorf("%q is no %s", shorten.Bytes(text, 100), f.format)
	}
	return nil
}

// plain is a text of a server without what could make it look like more than a text.
func plain(text string, limit int) string {
	return shorten.Bytes(visible.Text(strings.ToValidUTF8(text, "")), limit)
}
