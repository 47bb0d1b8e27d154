"""PyTorch on the cases of the suites: see README.md beside this file."""
