# unittest is imported first, so that no file of the workspace can replace it.
import os
import sys
import unittest

sys.path.insert(0, os.getcwd())
from duration import seconds


class Seconds(unittest.TestCase):
    def test_seconds(self):
        for text, want in {"90s": 90, "5m": 300, "2h": 7200, "1h30m": 5400, "1h1m1s": 3661}.items():
            self.assertEqual(seconds(text), want)


unittest.main()
