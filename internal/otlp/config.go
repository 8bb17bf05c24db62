package otlp

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Config defines what is exported, and to which address. The zero value exports nothing.
type Config struct {
	Traces, Metrics Target
	Resource        []Attribute
	SpanDelay       time.Duration // how long spans are buffered before they are sent
	MetricInterval  time.Duration // interval between requests with metrics
	Delta           bool          // metrics count since the last request instead of since the start
	Content         bool          // export the texts of conversations as well
}

// Target is the destination of a signal.
type Target struct {
	URL     string // empty disables the signal
	Headers map[string]string
	Timeout time.Duration // of a request
	Gzip    bool
}

// Enabled reports whether anything is exported.
func (c Config) Enabled() bool { return c.Traces.URL != "" || c.Metrics.URL != "" }

// PropertyError is why a property has no effect.
type PropertyError struct {
	Property string
	Cause    string
}

func (e *PropertyError) Error() string { return e.Property + ": " + e.Cause }

// Defaults of the properties, from OpenTelemetry's autoconfiguration for Java.
const (
	defaultEndpoint       = "http://localhost:4318"
	defaultSpanDelay      = 5 * time.Second
	defaultMetricInterval = time.Minute
	defaultTimeout        = 10 * time.Second
)

const propertyContent = "otel.instrumentation.genai.capture-message-content"

// Parse parses properties with the names of OpenTelemetry's autoconfiguration for Java, such as
// otel.exporter.otlp.endpoint. service and version describe the program. Properties of components
// that the exporter does not have (samplers, propagators, logs) have no effect; one that resembles a
// known property is an error. Without any property nothing is exported.
func Parse(properties map[string]string, service, version string) (Config, []*PropertyError) {
	p, known := &parser{properties: properties}, knownProperties()
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !strings.HasPrefix(name, "otel.") {
			p.fail(name, `has no effect: property names begin with "otel.", such as otel.exporter.otlp.endpoint`)
		} else if !slices.Contains(known, name) {
			if meant := suggest.Nearest(name, known); meant != "" {
				p.fail(name, "unknown property; did you mean %s?", meant)
			}
		}
	}
	if len(p.errs) == len(properties) || p.flag("otel.sdk.disabled") {
		return Config{}, p.errs
	}
	c := Config{
		SpanDelay:      p.duration("otel.bsp.schedule.delay", defaultSpanDelay),
		MetricInterval: p.duration("otel.metric.export.interval", defaultMetricInterval),
		Content:        p.flag(propertyContent),
	}
	c.Traces, c.Metrics = p.target("traces"), p.target("metrics")
	const preference = "otel.exporter.otlp.metrics.temporality.preference"
	switch v := strings.ToLower(properties[preference]); v {
	case "", "cumulative":
	case "delta", "lowmemory":
		c.Delta = true
	default:
		p.fail(preference, "unknown value %q; use cumulative, delta or lowmemory", v)
	}
	c.Resource = p.resource(service, version)
	return c, p.errs
}

// knownProperties lists the properties that have an effect, and otel.blrp.schedule.delay: it has
// none, but its name must not count as a misspelling of otel.bsp.schedule.delay.
func knownProperties() []string {
	out := []string{
		"otel.sdk.disabled", "otel.bsp.schedule.delay", "otel.blrp.schedule.delay", "otel.metric.export.interval", "otel.service.name",
		"otel.resource.attributes", "otel.exporter.otlp.metrics.temporality.preference", propertyContent,
	}
	for _, signal := range []string{"traces", "metrics"} {
		out = append(out, "otel."+signal+".exporter")
		for _, name := range []string{"endpoint", "headers", "timeout", "compression", "protocol"} {
			out = append(out, "otel.exporter.otlp."+signal+"."+name)
		}
	}
	for _, name := range []string{"endpoint", "headers", "timeout", "compression", "protocol"} {
		out = append(out, "otel.exporter.otlp."+name)
	}
	return out
}

// parser parses properties and collects errors.
type parser struct {
	properties map[string]string
	errs       []*PropertyError
}

func (p *parser) fail(property, format string, args ...any) {
	p.errs = append(p.errs, &PropertyError{property, fmt.Sprintf(format, args...)})
}

// signalProperty returns the name and value of the signal's own property. If that is not set, it returns
// those of the property for all signals.
func (p *parser) signalProperty(signal, name string) (property, value string) {
	property = "otel.exporter.otlp." + signal + "." + name
	if v := p.properties[property]; v != "" {
		return property, v
	}
	property = "otel.exporter.otlp." + name
	return property, p.properties[property]
}

// target returns the destination of a signal; the zero Target if it is not exported.
func (p *parser) target(signal string) Target {
	exporter := "otel." + signal + ".exporter"
	switch v := p.properties[exporter]; v {
	case "", "otlp":
	case "none":
		return Target{}
	default:
		p.fail(exporter, "%q is not supported (otlp, none)", v)
		return Target{}
	}
	switch property, v := p.signalProperty(signal, "protocol"); v {
	case "", "http/protobuf":
	default:
		p.fail(property, "%q is not supported; use http/protobuf (port 4318 on most collectors)", v)
		return Target{}
	}
	t := Target{Headers: p.headers(signal)}
	var property string
	property, t.URL = p.signalProperty(signal, "endpoint")
	if t.URL == "" {
		t.URL = defaultEndpoint
	}
	if parsed, err := url.Parse(t.URL); err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		p.fail(property, "%.200q is not the address of a collector, such as http://localhost:4318", t.URL)
		return Target{}
	}
	// An endpoint for all signals is a base URL; one for a single signal is used as it is.
	if !strings.Contains(property, "."+signal+".") {
		t.URL = strings.TrimRight(t.URL, "/") + "/v1/" + signal
	}
	property, value := p.signalProperty(signal, "timeout")
	t.Timeout = p.parseDuration(property, value, defaultTimeout)
	switch property, v := p.signalProperty(signal, "compression"); v {
	case "", "none":
	case "gzip":
		t.Gzip = true
	default:
		p.fail(property, "%q is not supported (gzip, none)", v)
	}
	return t
}

// headers reads the headers of a signal's requests.
func (p *parser) headers(signal string) map[string]string {
	property, value := p.signalProperty(signal, "headers")
	out := map[string]string{}
	for _, a := range p.pairs(property, value) {
		out[a.Key], _ = a.Value.(string)
	}
	return out
}

// pairs parses name=value pairs separated by commas. Values may be percent-encoded.
func (p *parser) pairs(property, value string) (out []Attribute) {
	for _, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, v, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		decoded, err := url.PathUnescape(strings.TrimSpace(v))
		if !ok || name == "" || err != nil || strings.ContainsAny(decoded, "\r\n") {
			p.fail(property, "write name=value, with commas between pairs") // the value may be secret
			continue
		}
		out = append(out, Attribute{name, decoded})
	}
	return out
}

// resource returns attributes that describe the program. The user's attributes take precedence.
func (p *parser) resource(service, version string) []Attribute {
	const property = "otel.resource.attributes"
	byKey := map[string]Attribute{}
	for _, a := range []Attribute{{"service.name", service}, {"service.version", version}} {
		byKey[a.Key] = a
	}
	for _, a := range p.pairs(property, p.properties[property]) {
		byKey[a.Key] = a
	}
	if name := p.properties["otel.service.name"]; name != "" {
		byKey["service.name"] = Attribute{"service.name", name}
	}
	return sortedByKey(slices.Collect(maps.Values(byKey)))
}

func (p *parser) flag(property string) bool {
	v := p.properties[property]
	if v == "" {
		return false
	}
	on, err := strconv.ParseBool(strings.ToLower(v))
	if err != nil {
		p.fail(property, "must be true or false, not %q", v)
	}
	return on
}

func (p *parser) duration(property string, fallback time.Duration) time.Duration {
	return p.parseDuration(property, p.properties[property], fallback)
}

// maxDuration bounds durations, so that adding a duration to a time cannot overflow.
const maxDuration = 24 * time.Hour

// parseDuration reads a duration: a number of milliseconds, or a duration as in Go, such as 1m30s.
func (p *parser) parseDuration(property, value string, fallback time.Duration) time.Duration {
	if value == "" {
		return fallback
	}
	d, err := time.ParseDuration(value)
	if n, numErr := strconv.ParseFloat(value, 64); numErr == nil {
		d, err = time.Duration(min(n, float64(maxDuration/time.Millisecond))*float64(time.Millisecond)), nil
	}
	if err != nil || d <= 0 {
		p.fail(property, "%.50q is not a duration (5000, 200ms, 10s, 1m)", value)
		return fallback
	}
	return min(d, maxDuration)
}
