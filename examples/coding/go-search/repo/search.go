package search

// Search returns the index of a number in a sorted list, or -1 if it is missing.
func Search(list []int, number int) int {
	low, high := 0, len(list)-1
	for low < high {
		middle := (low + high) / 2
		switch {
		case list[middle] == number:
			return middle
		case list[middle] < number:
			low = middle + 1
		default:
			high = middle - 1
		}
	}
	return -1
}
