package search

import "testing"

func TestSearch(t *testing.T) {
	list := []int{1, 3, 5, 7, 9}
	for i, number := range list {
		if got := Search(list, number); got != i {
			t.Errorf("%d is at %d, want %d", number, got, i)
		}
	}
	for _, number := range []int{0, 2, 10} {
		if got := Search(list, number); got != -1 {
			t.Errorf("%d is at %d", number, got)
		}
	}
	if got := Search(nil, 1); got != -1 {
		t.Errorf("an empty list has 1 at %d", got)
	}
}
