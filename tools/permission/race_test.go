//go:build race && unix

package permission

// enoughPrograms is how many programs are really run: with the race detector it is our code
// that is watched, not they.
const enoughPrograms = 60
