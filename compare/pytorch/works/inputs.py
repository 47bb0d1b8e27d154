"""Seeded inputs, as tensors."""
import torch


def torch_dtype(dtype):
    names = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16",
             "u8": "uint8"}
    return getattr(torch, names[dtype])


TOKENS_STREAM = 1 << 20  # beyond those of any tensor


class Inputs:
    """Seeded tensors; two with different streams differ."""

    def __init__(self, device, seed, weights=None):
        self.device, self.seed, self.weights = device, seed, weights

    def generator(self, stream):
        return torch.Generator(self.device).manual_seed((self.seed * 1000 + stream) % 2**63)

    def normal(self, *size, dtype, stream, stddev=1.0, grad=False):
        values = torch.randn(size, dtype=torch_dtype(dtype), device=self.device,
                             generator=self.generator(stream))
        return values.mul_(stddev).requires_grad_(grad)

    def integers(self, count, stream, dtype, low, high):
        return torch.randint(low, high, (count,), dtype=dtype, device=self.device,
                             generator=self.generator(stream))

    def words(self, count, stream):
        return self.integers(count, stream, torch.int32, -2**31, 2**31)

    def bytes(self, count, stream):
        return self.integers(count, stream, torch.uint8, 0, 256)

    def tokens(self, shape, dtype):
        """Token ids, distributed as kernels/common/tokens.h says."""
        n, vocabulary = shape["n"], shape["v"]
        numbers = torch.rand(n, dtype=torch.float64, device=self.device,
                             generator=self.generator(TOKENS_STREAM))
        if shape.get("tokens", "uniform") == "uniform":
            ids = (numbers * vocabulary).floor()
        else:
            ranks = torch.arange(1, vocabulary + 1, dtype=torch.float64, device=self.device)
            sums = ranks.reciprocal().cumsum(0)
            ids = torch.searchsorted(sums, numbers * sums[-1], right=True)
        return ids.clamp(max=vocabulary - 1).to(dtype)
