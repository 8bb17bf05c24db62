# unittest is imported first, so that no file of the workspace can replace it.
import os
import sys
import unittest

sys.path.insert(0, os.getcwd())
from table import fields


class Fields(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(fields("a,b,c"), ["a", "b", "c"])

    def test_quoted(self):
        self.assertEqual(fields('a,"b,c",d'), ["a", "b,c", "d"])


unittest.main()
