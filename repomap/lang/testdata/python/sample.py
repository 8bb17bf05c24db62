"""Docs: def not_this(): pass"""
import os
from typing import TypeVar

LIMIT = 10
T = TypeVar("T")
Names: list[str] = ["a", "b"]
quiet = 1
if LIMIT == 10:
    def conditional(): ...


class Shop(Base, metaclass=Meta):
    """A shop."""

    COUNT = 3

    @property
    def name(self) -> str:
        def local(): pass
        return f"{self._name!r} # not a comment"

    async def sell(
        self,
        item: dict[str, int] = {"a": 1},
        *args,
    ) -> "Receipt":  # comment
        text = '''
def inside(): pass
'''
        return lambda x: x

    class Inner:
        def deep(self): return 1


def main(argv=None):
    class Local:
        def hidden(self): pass
    x = (1 +
def_ + 2)
    return 0


if __name__ == "__main__":
    main()
_Handler = Shop
