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

// form is the set of fields that a server requests from the user (elicitation in form mode): a flat
// object of strings, numbers, booleans and choices.
type form struct{ fields []field }

// Limits of forms.
const (
	maxFields  = 20
	maxChoices = 50
	maxAnswer  = 16 << 10 // bytes
)

// field is one member of the object.
type field struct {
	name         string
	title        string
	description  string
	kind         fieldKind
	required     bool
	defaultValue any // the default; nil without one
	choices      []choice

	minimum, maximum *float64 // limits of a number, a string's length in characters, or the number of choices
	format           string   // of a string
}

type fieldKind string

const (
	textField        fieldKind = "text"
	numberField      fieldKind = "number"
	integerField     fieldKind = "integer"
	yesNoField       fieldKind = "boolean"
	choiceField      fieldKind = "one" // exactly one of the choices
	multiChoiceField fieldKind = "some"
)

// choice is a value with its label for the user.
type choice struct{ value, label string }

// property is a field in the form of JSON Schema.
type property struct {
	Type        string        `json:"type"`
	Title       string        `json:"title"`
	Description string        `json:"description"`
	Default     any           `json:"default"`
	Enum        []string      `json:"enum"`
	EnumNames   []string      `json:"enumNames"`
	OneOf       []titledConst `json:"oneOf"`
	AnyOf       []titledConst `json:"anyOf"`
	MinLength   *float64      `json:"minLength"`
	MaxLength   *float64      `json:"maxLength"`
	Minimum     *float64      `json:"minimum"`
	Maximum     *float64      `json:"maximum"`
	MinItems    *float64      `json:"minItems"`
	MaxItems    *float64      `json:"maxItems"`
	Format      string        `json:"format"`
	Items       *property     `json:"items"`
}

type titledConst struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// readForm parses the schema that a server sends. The error names the part for which eca cannot ask the
// user.
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
		return form{}, fmt.Errorf("cannot read requestedSchema: %w", err)
	}
	_ = json.Unmarshal(raw, &members) // same input as above
	switch {
	case schema.Type != "object":
		return form{}, errors.New("requestedSchema must be of type object")
	case len(schema.Properties) > maxFields:
		return form{}, fmt.Errorf("requestedSchema may have at most %d properties", maxFields)
	}
	var out form
	for _, name := range keysInOrder(members.Properties) {
		if slices.ContainsFunc(out.fields, func(f field) bool { return f.name == name }) {
			continue // duplicate key
		}
		var p property
		if err := json.Unmarshal(schema.Properties[name], &p); err != nil {
			return form{}, fmt.Errorf("cannot read the property %.100q: %w", name, err)
		}
		f, err := p.toField(name)
		if err != nil {
			return form{}, fmt.Errorf("the property %.100q %w", name, err)
		}
		f.required = slices.Contains(schema.Required, name)
		out.fields = append(out.fields, f)
	}
	return out, nil
}

// keysInOrder lists the keys of an object in written order, which is the order of the questions.
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

func (p property) toField(name string) (field, error) {
	f := field{name: name, title: p.Title, description: p.Description, defaultValue: p.Default, format: p.Format}
	switch p.Type {
	case "string":
		f.kind, f.minimum, f.maximum = textField, p.MinLength, p.MaxLength
		f.choices = p.options()
		if len(f.choices) > 0 {
			f.kind = choiceField
		}
	case "number":
		f.kind, f.minimum, f.maximum = numberField, p.Minimum, p.Maximum
	case "integer":
		f.kind, f.minimum, f.maximum = integerField, p.Minimum, p.Maximum
	case "boolean":
		f.kind = yesNoField
	case "array":
		if p.Items != nil {
			f.choices = p.Items.options()
		}
		if len(f.choices) == 0 {
			return field{}, errors.New("is a list without values to choose from")
		}
		f.kind, f.minimum, f.maximum = multiChoiceField, p.MinItems, p.MaxItems
	default:
		return field{}, fmt.Errorf("has the unsupported type %.50q", p.Type)
	}
	if len(f.choices) > maxChoices {
		return field{}, fmt.Errorf("has more than %d choices", maxChoices)
	}
	if f.defaultValue != nil && !f.accepts(f.defaultValue) {
		f.defaultValue = nil // ignore an invalid default
	}
	return f, nil
}

// options returns the values to choose from, in all the notations that versions of the protocol
// define.
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

// accepts reports whether a value is a valid answer to a field.
func (f field) accepts(value any) bool {
	switch v := value.(type) {
	case bool:
		return f.kind == yesNoField
	case float64:
		return (f.kind == numberField || f.kind == integerField && v == math.Trunc(v)) && f.checkRange(v) == nil
	case string:
		if f.kind == choiceField {
			return slices.ContainsFunc(f.choices, func(c choice) bool { return c.value == v })
		}
		return f.kind == textField && f.checkText(v) == nil
	case []any:
		for _, one := range v {
			if text, ok := one.(string); !ok || !slices.ContainsFunc(f.choices, func(c choice) bool { return c.value == text }) {
				return false
			}
		}
		return f.kind == multiChoiceField && f.checkRange(float64(len(v))) == nil
	}
	return false
}

// parseAnswer parses the user's answer; the error explains what is wrong with it.
func (f field) parseAnswer(answer string) (any, error) {
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
			return nil, fmt.Errorf("%q is not a number", shorten.Bytes(answer, 100))
		case f.kind == integerField && (n != math.Trunc(n) || math.Abs(n) > 1<<53):
			return nil, fmt.Errorf("%q is not a whole number", shorten.Bytes(answer, 100))
		}
		return n, f.checkRange(n)
	case choiceField:
		return f.choose(answer)
	case multiChoiceField:
		return f.chooseSome(answer)
	}
	return answer, f.checkText(answer)
}

// choose finds a choice by its label or its value.
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
	return "", fmt.Errorf("%q is not one of: %s", shorten.Bytes(answer, 100), f.labels())
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
	return out, f.checkRange(float64(len(out)))
}

func (f field) labels() string {
	var out []string
	for _, c := range f.choices {
		out = append(out, c.label)
	}
	return strings.Join(out, ", ")
}

// checkRange checks a number against the limits.
func (f field) checkRange(n float64) error {
	if f.minimum != nil && n < *f.minimum || f.maximum != nil && n > *f.maximum {
		return fmt.Errorf("it must be %s", f.describeLimits())
	}
	return nil
}

// describeLimits describes the limits of a field, if it has any.
func (f field) describeLimits() string {
	what := map[fieldKind]string{textField: " characters", multiChoiceField: " of them"}[f.kind]
	show := func(n *float64) string { return strconv.FormatFloat(*n, 'f', -1, 64) }
	switch {
	case f.minimum != nil && f.maximum != nil:
		return show(f.minimum) + " to " + show(f.maximum) + what
	case f.minimum != nil:
		return "at least " + show(f.minimum) + what
	case f.maximum != nil:
		return "at most " + show(f.maximum) + what
	}
	return ""
}

// checkText checks a text against its limits and format.
func (f field) checkText(text string) error {
	if len(text) > maxAnswer {
		return fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	if err := f.checkRange(float64(utf8.RuneCountInString(text))); err != nil {
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
		return fmt.Errorf("%q is not a valid %s", shorten.Bytes(text, 100), f.format)
	}
	return nil
}

// displayText returns a server's text, shortened, with invalid UTF-8 removed and hidden characters escaped.
func displayText(text string, limit int) string {
	return shorten.Bytes(visible.Text(strings.ToValidUTF8(text, "")), limit)
}
