package otlp

import (
	"cmp"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Attribute is a property of a span, a measurement or a resource. Value is a string, bool, int64,
// float64 or []string.
type Attribute struct {
	Key   string
	Value any
}

// Kind is the kind of a span, as the protocol numbers it.
type Kind uint64

// Kinds of spans.
const (
	Internal Kind = 1
	Client   Kind = 3 // a request to another program
)

// TraceID names a trace.
type TraceID [16]byte

// SpanID names a span of a trace.
type SpanID [8]byte

// Span is an operation with a beginning and an end.
type Span struct {
	Trace      TraceID
	ID         SpanID
	Parent     SpanID // zero for the root of a trace
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Failed     bool
	Message    string // why it failed
}

// Scope names the program that measures.
type Scope struct{ Name, Version string }

// message appends a field that is a message, which write fills.
func message(b []byte, field protowire.Number, write func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), write(nil))
}

func text(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func rawBytes(b []byte, field protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), data)
}

func varint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func fixed64(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func double(b []byte, field protowire.Number, v float64) []byte {
	return fixed64(b, field, math.Float64bits(v))
}

func timestamp(b []byte, field protowire.Number, t time.Time) []byte {
	return fixed64(b, field, uint64(t.UnixNano()))
}

// attributes appends a repeated KeyValue.
func attributes(b []byte, field protowire.Number, list []Attribute) []byte {
	for _, a := range list {
		b = message(b, field, func(b []byte) []byte {
			return message(text(b, 1, a.Key), 2, func(b []byte) []byte { return anyValue(b, a.Value) })
		})
	}
	return b
}

// anyValue appends the fields of an AnyValue. A value of another type is left out.
func anyValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string: // even if it is empty: the field determines the type of the value
		return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), v)
	case bool:
		return varint(b, 2, protowire.EncodeBool(v))
	case int64:
		return varint(b, 3, uint64(v))
	case float64:
		return double(b, 4, v)
	case []string:
		return message(b, 5, func(b []byte) []byte {
			for _, s := range v {
				b = message(b, 1, func(b []byte) []byte { return anyValue(b, s) })
			}
			return b
		})
	}
	return b
}

// envelope encodes the common structure of requests for both signals: a list of one resource, which
// has a list of one scope, whose records write appends.
func envelope(resource []Attribute, scope Scope, write func([]byte) []byte) []byte {
	return message(nil, 1, func(b []byte) []byte {
		b = message(b, 1, func(b []byte) []byte { return attributes(b, 1, resource) })
		return message(b, 2, func(b []byte) []byte {
			b = message(b, 1, func(b []byte) []byte { return text(text(b, 1, scope.Name), 2, scope.Version) })
			return write(b)
		})
	})
}

// encodeSpans returns an ExportTraceServiceRequest.
func encodeSpans(resource []Attribute, scope Scope, spans []Span) []byte {
	const failed = 2
	return envelope(resource, scope, func(b []byte) []byte {
		for i := range spans {
			s := &spans[i]
			b = message(b, 2, func(b []byte) []byte {
				b = rawBytes(rawBytes(b, 1, s.Trace[:]), 2, s.ID[:])
				if s.Parent != (SpanID{}) {
					b = rawBytes(b, 4, s.Parent[:])
				}
				b = varint(text(b, 5, s.Name), 6, uint64(s.Kind))
				b = attributes(timestamp(timestamp(b, 7, s.Start), 8, s.End), 9, s.Attributes)
				if s.Failed {
					b = message(b, 15, func(b []byte) []byte { return varint(text(b, 2, s.Message), 3, failed) })
				}
				return b
			})
		}
		return b
	})
}

// encodeMetrics returns an ExportMetricsServiceRequest.
func encodeMetrics(resource []Attribute, scope Scope, list []metric, now time.Time, temporality uint64) []byte {
	return envelope(resource, scope, func(b []byte) []byte {
		for _, m := range list {
			b = message(b, 2, func(b []byte) []byte {
				b = text(text(b, 1, m.Name), 3, m.Unit)
				if len(m.Bounds) > 0 {
					return message(b, 9, func(b []byte) []byte {
						for _, p := range m.points {
							b = message(b, 1, func(b []byte) []byte { return p.distribution(b, m.Bounds, now) })
						}
						return varint(b, 2, temporality)
					})
				}
				return message(b, 7, func(b []byte) []byte {
					for _, p := range m.points {
						b = message(b, 1, func(b []byte) []byte { return p.number(b, now) })
					}
					return varint(varint(b, 2, temporality), 3, 1) // monotonic
				})
			})
		}
		return b
	})
}

// number appends the fields of a NumberDataPoint.
func (p *point) number(b []byte, now time.Time) []byte {
	b = double(timestamp(timestamp(b, 2, p.start), 3, now), 4, p.sum)
	return attributes(b, 7, p.attributes)
}

// distribution appends the fields of a HistogramDataPoint.
func (p *point) distribution(b []byte, bounds []float64, now time.Time) []byte {
	b = double(fixed64(timestamp(timestamp(b, 2, p.start), 3, now), 4, p.count), 5, p.sum)
	var packed []byte
	for _, n := range p.buckets {
		packed = protowire.AppendFixed64(packed, n)
	}
	b = rawBytes(b, 6, packed)
	packed = nil
	for _, v := range bounds {
		packed = protowire.AppendFixed64(packed, math.Float64bits(v))
	}
	return attributes(rawBytes(b, 7, packed), 9, p.attributes)
}

// partialSuccess returns how many records the collector rejected according to its answer, and why. Both
// signals have the same field numbers. An unreadable answer counts as success.
func partialSuccess(answer []byte) (count int64, why string) {
	partial := lastBytes(answer, 1)
	if n, size := protowire.ConsumeVarint(afterLastTag(partial, 1, protowire.VarintType)); size > 0 {
		count = int64(n)
	}
	return count, string(lastBytes(partial, 2))
}

// lastBytes returns the last value of a field whose type is bytes, string or message; nil without one.
func lastBytes(b []byte, number protowire.Number) []byte {
	v, size := protowire.ConsumeBytes(afterLastTag(b, number, protowire.BytesType))
	if size < 0 {
		return nil
	}
	return v
}

// afterLastTag returns the bytes after the last tag of a field; nil without the field.
func afterLastTag(b []byte, number protowire.Number, want protowire.Type) (out []byte) {
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			return out
		}
		b = b[size:]
		if n == number && typ == want {
			out = b
		}
		if size = protowire.ConsumeFieldValue(n, typ, b); size < 0 {
			return out
		}
		b = b[size:]
	}
	return out
}

// sortedByKey returns attributes in the order of their keys.
func sortedByKey(list []Attribute) []Attribute {
	return slices.SortedFunc(slices.Values(list), func(a, b Attribute) int { return cmp.Compare(a.Key, b.Key) })
}
