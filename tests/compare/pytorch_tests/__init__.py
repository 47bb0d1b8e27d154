"""Tests of compare/pytorch, by idea; tests/compare/test_pytorch.py runs them."""
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "compare"))
