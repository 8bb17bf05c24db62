package esrp

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// The fields of records have a tag with the name of their member. A pointer is nil if its member is
// missing or null. A field that is tagged "omissible" keeps its value if its member is missing, and a
// list with that tag is left out if it is empty. The other fields are required.

// field is a field of a record.
type field struct {
	name      string
	omissible bool
	value     reflect.Value
}

// fieldsOf returns the fields of a record.
func fieldsOf(record reflect.Value) []field {
	out := make([]field, record.NumField())
	for i := range out {
		name, option, _ := strings.Cut(record.Type().Field(i).Tag.Get("esrp"), ",")
		out[i] = field{name, option == "omissible", record.Field(i)}
	}
	return out
}

// decodeRecord decodes a record into a struct. The error is a *DecodeError.
func decodeRecord(v Value, into any) error {
	d := &decoder{}
	d.record(reflect.ValueOf(into).Elem(), v, "")
	if d.err == nil {
		return nil
	}
	return d.err
}

// decoder remembers the first error. Values that are decoded after an error are meaningless.
type decoder struct{ err *DecodeError }

func (d *decoder) fail(at, format string, args ...any) {
	if d.err == nil {
		d.err = &DecodeError{at, fmt.Sprintf(format, args...)}
	}
}

// expect reports a value of another kind.
func (d *decoder) expect(v Value, want Kind, at string) {
	if v.Kind != want {
		d.fail(at, "expected %s, not %s", want, v.Kind)
	}
}

func (d *decoder) record(into reflect.Value, v Value, at string) {
	d.expect(v, Object, at)
	for _, f := range fieldsOf(into) {
		name := f.name
		if at != "" {
			name = at + "." + name
		}
		n := 0
		for _, m := range v.Members { // unknown members may be repeated
			if m.Key == f.name {
				n++
			}
		}
		member, ok := v.Get(f.name)
		switch {
		case n > 1:
			d.fail(name, "duplicate field")
		case !ok && f.omissible:
		case f.value.Kind() == reflect.Pointer:
			if member.Kind != Null {
				f.value.Set(reflect.New(f.value.Type().Elem()))
				d.value(f.value.Elem(), member, name)
			}
		case !ok:
			d.fail(name, "missing field")
		default:
			d.value(f.value, member, name)
		}
	}
}

func (d *decoder) value(into reflect.Value, v Value, at string) {
	var err error
	switch leaf := into.Addr().Interface().(type) {
	case *Value:
		*leaf = v
		return
	case *UUID:
		d.expect(v, String, at)
		*leaf, err = ParseUUID(v.Text)
	case *Instant:
		d.expect(v, String, at)
		*leaf, err = ParseInstant(v.Text)
	case *millis:
		d.expect(v, Number, at)
		leaf.literal = v.Text
	default:
		d.generic(into, v, at)
	}
	if err != nil {
		d.fail(at, "%v", err)
	}
}

// generic decodes a value into a type that is not one of the package's own scalars.
func (d *decoder) generic(into reflect.Value, v Value, at string) {
	switch into.Kind() {
	case reflect.Struct:
		d.record(into, v, at)
	case reflect.Slice:
		d.expect(v, Array, at)
		into.Set(reflect.MakeSlice(into.Type(), len(v.Items), len(v.Items)))
		for i, item := range v.Items {
			d.record(into.Index(i), item, fmt.Sprintf("%s[%d]", at, i))
		}
	case reflect.Bool:
		d.expect(v, Bool, at)
		into.SetBool(v.Bool)
	case reflect.Uint64, reflect.Uint32:
		d.expect(v, Number, at)
		limit := uint64(math.MaxUint64) >> (64 - into.Type().Bits())
		n, err := strconv.ParseUint(v.Text, 10, 64)
		if err != nil || n > limit {
			d.fail(at, "%s must be a whole number from 0 to %d", v.Text, limit)
		}
		into.SetUint(n)
	default:
		d.expect(v, String, at)
		if allowed := choices(into.Interface()); allowed != nil && !slices.Contains(allowed, v.Text) {
			d.fail(at, "%q must be one of %s", v.Text, strings.Join(allowed, ", "))
		}
		into.SetString(v.Text)
	}
}

// choices returns the texts that a type allows; nil means any.
func choices(text any) []string {
	switch text.(type) {
	case ModeType:
		return texts(Sync, Async)
	case Encoding:
		return texts(UTF8, Base64, Path)
	case Status:
		return texts(Succeeded, Failed, Accepted)
	case JobState:
		return texts(JobQueued, JobStarted, JobSucceeded, JobFailed, JobCancelled)
	case ArtifactKind:
		return texts(File, Blob)
	case Retention:
		return texts(Ephemeral, Run, Pinned)
	case Code:
		return texts(BackendUnavailable, Timeout, OutOfMemory, InvalidInputSchema, InvalidInputSemantic, InvalidInputSize, Unknown)
	case RetryStrategy:
		return texts(Exponential, Linear, Immediate)
	case JobEventType:
		return texts(JobQueuedEvent, JobStartedEvent, JobProgressEvent, ArtifactCreated, JobCompletedEvent, JobFailedEvent, JobCancelledEvent)
	}
	return nil
}

func texts[T ~string](of ...T) []string {
	out := make([]string, len(of))
	for i, text := range of {
		out[i] = string(text)
	}
	return out
}

// encodeRecord encodes a record, a list of records, or a field.
func encodeRecord(record any) Value {
	switch leaf := record.(type) {
	case Value:
		return leaf
	case UUID:
		return StringValue(leaf.String())
	case Instant:
		return StringValue(leaf.String())
	case millis:
		if !leaf.ours && isInteger(leaf.literal) {
			leaf.literal += ".0" // a floating-point number, which the reference refuses to hash
		}
		return Value{Kind: Number, Text: leaf.literal}
	}
	v := reflect.ValueOf(record)
	switch v.Kind() {
	case reflect.Struct:
		out := ObjectValue()
		for _, f := range fieldsOf(v) {
			switch value := reflect.Indirect(f.value); {
			case !value.IsValid(), f.omissible && value.Kind() == reflect.Slice && value.Len() == 0:
			default:
				out.Members = append(out.Members, Member{f.name, encodeRecord(value.Interface())})
			}
		}
		return out
	case reflect.Slice:
		out := Value{Kind: Array, Items: make([]Value, v.Len())}
		for i := range out.Items {
			out.Items[i] = encodeRecord(v.Index(i).Interface())
		}
		return out
	case reflect.Bool:
		return BoolValue(v.Bool())
	case reflect.Uint64, reflect.Uint32:
		return Value{Kind: Number, Text: strconv.FormatUint(v.Uint(), 10)}
	}
	return StringValue(v.String())
}
