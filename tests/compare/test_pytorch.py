#!/usr/bin/env python3
"""compare/pytorch: everything but the GPU, as TAP lines.

What the C code computed (baselines/) is the second method for names, numbers as text
and the order of cases. Where PyTorch is installed the cases themselves run on the CPU,
with tiny shapes.
"""
import os
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = FOLDER

from pytorch_tests.tap import Tap  # noqa: E402

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.discover(os.path.join(FOLDER, "pytorch_tests"),
                                                top_level_dir=FOLDER)
    print(f"1..{suite.countTestCases()}")
    result = Tap()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
