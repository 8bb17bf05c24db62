import re


def slug(title):
    """Return a title as part of a URL: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]", "-", title.lower())
