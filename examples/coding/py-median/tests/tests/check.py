# unittest is imported first, so that no file of the workspace can replace it.
import os
import sys
import unittest

sys.path.insert(0, os.getcwd())
from median import median


class Median(unittest.TestCase):
    def test_median(self):
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([4, 1, 3, 2]), 2.5)
        self.assertEqual(median([5]), 5)
        self.assertEqual(median([2, 1]), 1.5)


unittest.main()
