// Package pattern defers the compilation of regular expressions to their first use.
//
// A package variable that calls [regexp.MustCompile] is compiled at each start of each program that
// links its package, used or not.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles the expression at its first call. Like
// [regexp.MustCompile], that call panics if the expression is invalid.
func Lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
