//go:build !race && unix

package permission

import "math"

// enoughPrograms is how many programs the tests really run: all that they generate.
const enoughPrograms = math.MaxInt
