// Package suggest finds the name that was probably meant by an unknown one.
//
// It only compares names. It does not know what they name or whether one may be used: the caller
// passes the valid names.
package suggest

import (
	"cmp"
	"fmt"
	"strings"
)

// Nearest returns the name that was probably meant by word: the most similar one, or else the only
// one that begins with word. It may be empty.
func Nearest(word string, names []string) string {
	best, least := "", 1+min(2, len(word)/3)
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && name != word {
			best, least = name, d
		}
	}
	return cmp.Or(best, completed(word, names))
}

// completed returns the only name that begins with a word of a minimum length.
func completed(word string, names []string) (only string) {
	const enough = 4
	for _, name := range names {
		if len(word) < enough || len(name) <= len(word) || !strings.EqualFold(name[:len(word)], word) {
			continue
		}
		if only != "" {
			return ""
		}
		only = name
	}
	return only
}

// DidYouMean returns an addition to a message about an unknown name: "; did you mean X?", or an
// empty string if no name is similar.
func DidYouMean(word string, names []string) string {
	if best := Nearest(word, names); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return ""
}

// distance returns the number of bytes to insert, remove, replace or swap with their neighbour to
// turn one text into the other.
func distance(a, b string) int {
	if n := len(a) - len(b); n > 3 || n < -3 || len(a) > 100 {
		return 100 // too different
	}
	before, last, now := []int(nil), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, make([]int, len(b)+1)
	}
	return last[len(b)]
}
