def seconds(text):
    """Return the number of seconds in a duration such as 90s, 5m or 2h."""
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
