"""Token and position embedding."""
import torch
from torch.nn import functional

from ..workload import Workload
from .calls import backward_work, compiled
from .checks import compared


def embed(tokens, token_table, position_table=None):
    """Rows are whole sequences, one after the other."""
    rows = functional.embedding(tokens, token_table)
    if position_table is None:
        return rows
    context, columns = position_table.shape
    return (rows.view(-1, context, columns) + position_table).view(-1, columns)


def embedding_tables(case, inputs, grad):
    s = case.shape
    sizes = [s["v"], s["t"]] if s["t"] else [s["v"]]
    return [inputs.normal(size, s["c"], dtype=case.dtype, stream=stream, grad=grad)
            for stream, size in enumerate(sizes)]


def build_embedding_forward(case, inputs):
    tokens = inputs.tokens(case.shape, torch.int32)
    tables = embedding_tables(case, inputs, grad=False)
    run = compiled(embed, case)

    def verify(outputs):
        reference = tables[0][tokens.long()].double()
        if len(tables) == 2:
            reference += tables[1].double().repeat(len(tokens) // len(tables[1]), 1)
        return compared(case, outputs, [reference])
    return Workload(lambda: (run(tokens, *tables),), verify)


def build_embedding_backward(case, inputs):
    s = case.shape
    tokens = inputs.tokens(s, torch.int32)
    forward, tables = compiled(embed, case), embedding_tables(case, inputs, grad=True)
    gradient = inputs.normal(s["n"], s["c"], dtype=case.dtype, stream=2)

    def verify(outputs):
        rows = gradient.double()
        by_token = torch.zeros(tables[0].shape, dtype=torch.float64, device=inputs.device)
        references = [by_token.index_add_(0, tokens.long(), rows)]
        if s["t"]:
            references.append(rows.view(-1, s["t"], s["c"]).sum(0))
        return compared(case, outputs, references)
    return backward_work(case, lambda: forward(tokens, *tables), tables, gradient, verify)


BUILDERS = {"embedding.forward": build_embedding_forward,
            "embedding.backward": build_embedding_backward}
