def chunks(items, size):
    """Split a list into lists of a size; the last may be shorter."""
    return [items[i : i + size] for i in range(0, len(items) - size + 1, size)]
