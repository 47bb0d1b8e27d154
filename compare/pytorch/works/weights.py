"""A model's parameters from a safetensors file as kernels/model/checkpoint.h writes it."""
import functools
import json
import struct

import torch

from ..parameters import model_shapes, parameter_names

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16,
          "I32": torch.int32}


@functools.lru_cache(maxsize=2)
def read_tensors(path):
    """8 bytes that tell the header's length, the header in JSON, the data."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        length, = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__", None)
        return {name: tensor_at(data, 8 + length, **entry) for name, entry in header.items()}
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}': no safetensors file: {error}") from error


def tensor_at(data, base, dtype, shape, data_offsets):
    begin, end = (base + offset for offset in data_offsets)
    if end > len(data):
        raise ValueError("it ends early")
    return torch.frombuffer(bytearray(data[begin:end]), dtype=DTYPES[dtype]).view(shape)


def read_parameters(path, shape, device):
    """In f32 and in the model's order, tables padded with zeros."""
    tensors, parameters = read_tensors(path), []
    for name, size in zip(parameter_names(shape), model_shapes(shape)):
        tensor = tensors.get(name)
        rows = shape["v"] if name in ("token_embedding", "head.weight") else size[0]
        if tensor is None or tuple(tensor.shape) != (rows, *size[1:]):
            found = "is missing" if tensor is None else f"is {list(tensor.shape)}"
            raise ValueError(f"'{path}': {name} {found}, not {[rows, *size[1:]]}")
        padded = torch.zeros(size, dtype=torch.float32, device=device)
        padded[:rows] = tensor
        parameters.append(padded)
    return parameters
