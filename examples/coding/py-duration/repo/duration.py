def seconds(text):
    """Return the seconds of a duration like 90s, 5m or 2h."""
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
