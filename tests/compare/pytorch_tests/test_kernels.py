"""--kernels: what both sides saw, and how it is told."""
import contextlib
import io
import os
import tempfile
import unittest

from pytorch.errors import UsageError
from pytorch.kernels import print_beside, read_suite, read_trace

HEADER = "kernels_schema,suite,case,variant,dtype,params,kind,name,launches,total_us\n"
CSV = HEADER + '''1,model,model.step,fused,bf16,b=1,kernel,"k<1, 2>",3,30
1,model,model.step,fused,bf16,b=1,kernel,l,1,10
1,model,model.step,fused,bf16,b=1,memset,memset,2,1
1,model,model.step,naive,bf16,b=1,kernel,m,1,9
1,model,model.step,fused,bf16,b=1,range,run,1,99
'''
# Two launches of one kernel, a copy; what is on the host or is no slice counts for nothing.
EVENTS = [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 6.5},
          {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 9, "dur": 1.5},
          {"ph": "X", "cat": "kernel", "name": "add", "ts": 9, "dur": 2},
          {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 9, "dur": 5},
          {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 0, "dur": 3},
          {"ph": "f", "cat": "kernel", "name": "flow", "ts": 0},
          {"ph": "M", "name": "process_name"}]


class Kernels(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
            file.write(text)
        self.addCleanup(os.unlink, file.name)
        return read_suite(file.name)

    def test_the_suites_file(self):
        seen = self.read(CSV)
        self.assertEqual(sorted(seen), [("model.step bf16 b=1", "fused"),
                                        ("model.step bf16 b=1", "naive")])
        fused = seen["model.step bf16 b=1", "fused"]
        self.assertEqual(fused.launches, {"kernel": 4, "copy": 0, "memset": 2})
        self.assertEqual(fused.top(), [(0.75, "k<1, 2>"), (0.25, "l")])

    def test_the_profilers_events(self):
        seen = read_trace(EVENTS)
        self.assertEqual(seen.launches, {"kernel": 3, "copy": 1, "memset": 0})
        self.assertEqual(seen.top(), [(0.8, "gemm"), (0.2, "add")])

    def test_both_are_told(self):
        suites = [(variant, seen) for (_, variant), seen in self.read(CSV).items()]
        torches = [("torch-eager", read_trace(EVENTS)), ("torch-graph", read_trace(EVENTS[1:]))]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            print_beside("model.step bf16 b=1", suites, torches)
        text = out.getvalue()
        self.assertIn("  fused: 4 kernels, 0 copies, 2 memsets; 40.0 us of kernels\n"
                      "     75.0 %  k<1, 2>\n", text)
        self.assertIn("  torch-eager: 3 kernels, 1 copies, 0 memsets; 10.0 us of kernels\n", text)
        self.assertIn("torch-graph replays 2 kernels, torch-eager launches 3\n", text)

    def test_other_files_are_refused(self):
        for text in ("schema,suite\n2,norm\n", HEADER, "", CSV + "1,model,x,y,z,p,kernel,n,?,1\n"):
            self.assertRaises(UsageError, self.read, text)
        self.assertRaises(UsageError, read_suite, "/nowhere/k.csv")
