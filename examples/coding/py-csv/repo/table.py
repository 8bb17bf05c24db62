def fields(line):
    """Return the fields of a line; a quoted field may contain commas."""
    return line.split(";")
