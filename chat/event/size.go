package event

import "reflect"

// partOverhead is the estimated size of a slice element without the data it refers to, in bytes.
const partOverhead = 128

// Size estimates the memory of a value, in bytes: its strings and byte slices, and an overhead for
// each element of other slices.
func Size(v any) int { return size(reflect.ValueOf(v)) }

func size(v reflect.Value) int {
	n := 0
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()
		}
		for i := range v.Len() {
			n += partOverhead + size(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += size(v.Field(i))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return size(v.Elem())
		}
	}
	return n
}
