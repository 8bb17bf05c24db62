def median(numbers):
    """Return the median of a list that is not empty."""
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2]
