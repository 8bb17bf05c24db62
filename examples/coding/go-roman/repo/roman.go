package roman

import "strings"

// Roman formats a number from 1 to 3999 in Roman numerals.
func Roman(n int) string {
	var b strings.Builder
	for _, d := range []struct {
		value int
		text  string
	}{
		{1000, "M"}, {500, "D"}, {100, "C"}, {50, "L"}, {10, "X"}, {5, "V"}, {1, "I"},
	} {
		for ; n >= d.value; n -= d.value {
			b.WriteString(d.text)
		}
	}
	return b.String()
}
