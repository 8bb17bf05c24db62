//go:build race && unix

package permission

// enoughPrograms is how many programs the tests really run. With the race detector a few suffice,
// because it watches eca's code and not the programs.
const enoughPrograms = 60
