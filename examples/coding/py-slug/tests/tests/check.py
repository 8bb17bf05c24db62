# unittest is imported first, so that no file of the workspace can replace it.
import os
import sys
import unittest

sys.path.insert(0, os.getcwd())
from slug import slug


class Slug(unittest.TestCase):
    def test_slug(self):
        for title, want in {"Hello, World!": "hello-world", "  a  b ": "a-b", "x": "x", "!!!": "", "C++ & Go": "c-go"}.items():
            self.assertEqual(slug(title), want)


unittest.main()
