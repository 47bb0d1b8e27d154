"""Copies and fills of memory."""
import torch

from ..variants import PINNED
from ..workload import Workload
from .checks import equal

SET_VALUE = 0x5A


def copy_workload(destination, source, ungated=False):
    def run():
        return (destination.copy_(source, non_blocking=True),)
    return Workload(run, lambda outputs: equal(outputs[0].cpu(), source.cpu()), ungated)


def build_h2d(case, inputs):
    pinned = case.variant == PINNED
    source = inputs.bytes(case.shape["bytes"], stream=0)
    host = source.cpu().pin_memory() if pinned else source.cpu()
    return copy_workload(torch.empty_like(source), host, ungated=not pinned)


def build_d2h(case, inputs):
    pinned = case.variant == PINNED
    source = inputs.bytes(case.shape["bytes"], stream=0)
    host = torch.zeros(source.shape, dtype=torch.uint8, pin_memory=pinned)
    return copy_workload(host, source, ungated=not pinned)


def build_d2d(case, inputs):
    source = inputs.bytes(case.shape["bytes"], stream=0)
    return copy_workload(torch.empty_like(source), source)


def build_memset(case, inputs):
    target = torch.empty(case.shape["bytes"], dtype=torch.uint8, device=inputs.device)
    return Workload(lambda: (target.fill_(SET_VALUE),),
                    lambda outputs: equal(outputs[0].amin(), outputs[0].amax())
                    + equal(outputs[0][0].cpu(), torch.tensor(SET_VALUE, dtype=torch.uint8)))


BUILDERS = {"memcpy.h2d": build_h2d, "memcpy.d2h": build_d2h, "memcpy.d2d": build_d2d,
            "memcpy.h2h": build_d2d,
            "memcpy.memset": build_memset}
