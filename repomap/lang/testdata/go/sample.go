// Package shop sells things.
package shop

import "fmt"

const limit = 10

const (
	Red, Green = iota, 1 << iota
	_, _
	Blue = "it's {blue" // not a brace
)

var (
	table = map[string]int{
		"a": 1,
	}
	longer = 1 +
		2
	handler = func(x int) int { var local = x; return local }
)

type (
	ID      string
	Shape   interface{ Area() float64 }
	List[T any] struct {
		items []T
	}
	Grid  [limit]struct{ x int }
	Alias = struct{}
)

type Visitor func(s Shape) error

// Sell func notThis() sells.
func Sell(s Shape, f func() struct{ a int }) (n int, err error) {
	type local struct{}
	var inside = `func raw() {`
	fmt.Println(inside)
	return 0, nil
}

func (l *List[T]) Add(
	item T, // the item
	more ...T,
) {
}

func (Grid) x() rune { return '{' }

func external(a int) int

func Max[T ~int | ~string](a, b T) T { return a }; var After = 1
