def fields(line):
    """Return the fields of a line; one in quotes may have commas."""
    return line.split(";")
