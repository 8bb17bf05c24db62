def chunks(items, size):
    """Split a list into chunks of the given size; the last chunk may be shorter."""
    return [items[i : i + size] for i in range(0, len(items) - size + 1, size)]
