# unittest is imported first, so that no file of the workspace can replace it.
import os
import sys
import unittest

sys.path.insert(0, os.getcwd())
from chunks import chunks


class Chunks(unittest.TestCase):
    def test_all(self):
        self.assertEqual(chunks([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]])
        self.assertEqual(chunks([1, 2], 2), [[1, 2]])
        self.assertEqual(chunks([1], 3), [[1]])
        self.assertEqual(chunks([], 3), [])


unittest.main()
