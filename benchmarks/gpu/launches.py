"""Count kernel launches and bytes of a recorded training update, compiled for an H100 without a GPU.

    python -m benchmarks.gpu.launches --architectures g_transformer rst_mix global_context

The loss of a filled batch and its gradients are traced on this CPU and compiled by inductor for compute capability 9.0.
Operators outside of the compiled graph are counted one by one. Kernels that libraries add to an operator, for example
split-K sums of cuBLAS, are not counted. An H100 needed 4 % more launches than such a count (docs/experiments/gpu.md).
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx, nn
from torch._functorch import config as differentiation
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext, tracing
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import joint_graph_passes
from torch._inductor.virtualized import V
from torch._subclasses import FakeTensorMode
from torch.func import functional_call
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.gpu.sm90 import compile_for_h100
from benchmarks.gpu.workload import model_settings, random_instances
from docmt.models.attention import varlen
from docmt.models.batch import collate
from docmt.models.buffers import map_leaves
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.systems.context_transformer import build_transformer
from docmt.training import loss as losses
from docmt.training.filling import FilledBatch
from docmt.training.loss import LossModule

SENTENCES, SHORTEST, LONGEST, N_SYMBOLS = 17, 8, 48, 30_000
MAX_TENSORS, MAX_BLOCKS, CHUNK = {1: 110, 2: 64, 3: 48, 4: 36}, 320, 65536
"""Limits of a launch for lists of tensors, in torch: tensors by number of lists, blocks, and numbers per block."""
LISTS = {"_foreach_norm": 1, "_foreach_add_": 1, "_foreach_mul_": 1, "_foreach_copy_": 2, "_fused_adam_": 4}
"""Operators for lists of tensors, and the number of lists that they read or write."""
CALLS = {
    "Triton kernels": r"\.run\(",
    "matrix products": r"extern_kernels\.\w*mm\(",
    "sums without Triton": r"\.sum\(dim=0\)",
    "random seeds": r"aten\.randint\.low_out\(",
    "other operators of torch": r"aten\.(?!randint)\w+\.\w+\(",
}
"""Calls in generated code that launch a kernel."""
Rows = dict[str, tuple[int, float]]
"""Launches and gigabytes by part."""


class Launches(TorchDispatchMode):
    """Counts launches of operators that are called outside of compiled graphs, and the bytes that they move."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.n_bytes = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = function(*args, **(kwargs or {}))
        name = function._schema.name.removeprefix("aten::")
        inputs, outputs = (
            [t for t in tree_leaves(nest) if isinstance(t, Tensor)] for nest in ((args, kwargs), results)
        )
        storages = {tensor.untyped_storage()._cdata for tensor in inputs}
        is_view = all(tensor.untyped_storage()._cdata in storages for tensor in outputs)
        if name in LISTS:
            self.n += list_launches([tensor.numel() for tensor in args[0]], LISTS[name])
        elif function._schema.is_mutable or not (is_view or name.startswith("empty") or name == "detach"):
            self.n += 1
        else:
            return results
        self.n_bytes += sum(tensor.nbytes for tensor in (*inputs, *outputs))
        return results


def list_launches(sizes: Sequence[int], n_lists: int) -> int:
    """Return the launches of an operator for lists of tensors with these sizes (`multi_tensor_apply` in torch)."""
    n = n_blocks = n_tensors = 0
    for size in sizes:
        n_tensors += 1
        for rest in range(size, 0, -CHUNK):
            n_blocks += 1
            is_last = rest <= CHUNK
            if n_blocks == MAX_BLOCKS or (is_last and n_tensors == MAX_TENSORS[n_lists]):
                n, n_blocks, n_tensors = n + 1, 0, 0 if is_last else 1
    return n + (n_blocks > 0)


class Loss(nn.Module):
    """The function that a training compiles."""

    def __init__(self, module: LossModule) -> None:
        super().__init__()
        self.module = module

    def forward(self, *arguments: Any) -> Tensor:
        return self.module.loss(*arguments)


def trace(
    function: Callable[..., Any], *arguments: Any, mode: FakeTensorMode
) -> Iterator[tuple[str, fx.GraphModule, list[Any]]]:
    """Yield name, graph and inputs for a function of fake tensors, and for its gradients if it has any."""
    graphs = []

    def keep(name: str) -> Callable[..., Any]:
        return lambda graph, inputs: (graphs.append((name, graph, inputs)), graph)[1]

    def divide(graph: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        with V.set_fake_mode(mode):
            joint_graph_passes(graph)
        return min_cut_rematerialization_partition(graph, inputs, **options | {"compiler": "inductor"})  # pyright: ignore

    with (
        mode,
        tracing(TracingContext(mode)),
        mock.patch("torch.compiler.is_compiling", return_value=True),
        differentiation.patch(force_non_lazy_backward_lowering=True),
    ):
        result = aot_function(
            function,
            fw_compiler=keep("forward"),
            bw_compiler=keep("backward"),
            partition_fn=divide,
            decompositions=select_decomp_table(),
            keep_inference_input_mutations=True,
        )(*arguments)
        if result.requires_grad:
            result.backward()  # the second graph
    yield from graphs


def compiled_rows(name: str, graph: fx.GraphModule, inputs: list[Any], mode: FakeTensorMode) -> Rows:
    """Return the launches of a compiled graph by kind. Bytes are in the first row."""
    code, n_bytes = compile_for_h100(graph, inputs, mode, is_backward=name == "backward")
    code = re.sub(r"^\s*#.*$", "", code, flags=re.MULTILINE)
    counts = {part: len(re.findall(call, code)) for part, call in CALLS.items()}
    return {f"{name}: {part}": (n, 0.0 if i else n_bytes / 1e9) for i, (part, n) in enumerate(counts.items()) if n}


def attention_launches(node: fx.Node) -> int:
    """Return the launches of an attention operator in a graph."""
    max_queries, max_keys = map(int, node.args[-3:-1])  # pyright: ignore[reportArgumentType]
    tensors = [argument.meta["val"] for argument in node.all_input_nodes]
    n_groups = next(len(tensor) for tensor in tensors if tensor.dtype == torch.int32) - 1
    n_rows = max(len(tensor) for tensor in tensors if tensor.dim() >= 3)
    if varlen.has_short_groups(n_rows, n_groups, max(max_queries, max_keys)):
        return 1
    n_joined = sum(tensor.dim() == 4 and tensor.shape[1] > 1 for tensor in tensors)
    return 3 + n_joined if "backward" in str(node.target) else 1


def measure(architecture: str, size: str, n_documents: int) -> Rows:
    """Return launches and gigabytes by part."""
    settings = model_settings(architecture, size)
    counts = [SENTENCES] * n_documents
    instances = random_instances(counts, shortest=SHORTEST, longest=LONGEST, n_symbols=N_SYMBOLS)
    filled = FilledBatch.of(collate(instances, range(n_documents), settings))
    _, batch = filled.views(filled.buffer, settings)
    mode, rows = FakeTensorMode(allow_non_fake_inputs=True), {}
    with torch.device("meta"):
        plain = LossModule(build_transformer(settings, N_SYMBOLS), 0.1).train()
    plain.few_launches = True
    module = Loss(plain)
    leaves = []

    def copy(tensor: Tensor) -> Tensor:
        with mode:
            leaves.append(torch.empty(tensor.shape, dtype=tensor.dtype))
        return leaves[-1]

    arguments = map_leaves((batch.src_tokens_S, batch.tgt_inputs_N, batch.tgt_labels_N, batch.layout), copy)
    with mode:
        names = [name for name, _ in module.named_parameters()]
        parameters = [torch.empty(p.shape).requires_grad_() for p in module.parameters()]

    def compute(parameters: list[Tensor], leaves: list[Tensor]) -> Tensor:
        rest = iter(leaves)
        inputs = map_leaves(arguments, lambda _: next(rest))
        with torch.autocast("cpu", torch.bfloat16):
            return functional_call(module, dict(zip(names, parameters, strict=True)), inputs, tie_weights=False)

    operators, chunks = Counter(), Launches()
    for name, graph, inputs in trace(compute, parameters, leaves, mode=mode):
        for node in graph.graph.nodes:
            if str(node.target).startswith("docmt.varlen_attention"):
                operators[f"{name}: attention"] += attention_launches(node)
            elif str(node.target).startswith("docmt.convert"):
                sizes = [part.meta["val"].numel() for part in node.all_input_nodes]
                operators[f"{name}: conversions"] += list_launches(sizes, LISTS["_foreach_copy_"])
        rows |= compiled_rows(name, graph, inputs, mode)
    rows |= {name: (n, 0.0) for name, n in operators.items()}

    n_chunks, seen = 0, []

    def note_chunk(*inputs: Any) -> Tensor:
        nonlocal n_chunks
        n_chunks += 1
        seen.append(inputs)
        return torch.empty_like(inputs[0])

    with mode, torch.no_grad():
        hidden_ND = torch.empty(len(batch.tgt_inputs_N), settings.width)
        table_VD, bias_V = torch.empty(N_SYMBOLS, settings.width), torch.empty(N_SYMBOLS)
        labels_N = torch.empty(len(hidden_ND), dtype=torch.int64)
        bias_V = bias_V if settings.form.output_bias else None
        with mock.patch.object(losses, "_compiled_chunk", return_value=note_chunk), chunks:
            options = 0.1, torch.bfloat16, bias_V, losses.CHUNK_SCORES_WITH_FEW_LAUNCHES
            losses._in_compiled_chunks(hidden_ND, table_VD, labels_N, *options)
        ((_, graph, inputs),) = trace(lambda *tensors: losses._chunk(*tensors, *seen[0][5:]), *seen[0][:5], mode=mode)
    for part, (n, gigabytes) in compiled_rows("loss", graph, inputs, mode).items():
        rows[part] = n * n_chunks, gigabytes * n_chunks
    rows["loss: other operators"] = chunks.n, chunks.n_bytes / 1e9

    with mode, torch.no_grad(), Launches() as clipping:
        gradients = [torch.empty(p.shape) for p in parameters]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        clip_grads_with_norm_(parameters, 1.0, get_total_norm(gradients, foreach=True), foreach=True)
    rows["norm and clipping"] = clipping.n, clipping.n_bytes / 1e9
    with mode, torch.no_grad(), Launches() as adam:
        steps = [torch.zeros(()) for _ in parameters]
        torch._foreach_add_(steps, 1)  # pyright: ignore[reportPrivateImportUsage]
        options = {"lr": 1.0, "beta1": 0.9, "beta2": 0.98, "weight_decay": 0.0, "eps": 1e-9}
        lists = parameters, gradients, gradients, gradients, [], steps
        torch._fused_adam_(*lists, **options, amsgrad=False, maximize=False)  # pyright: ignore
    rows["Adam"] = adam.n - len(steps), adam.n_bytes / 1e9  # steps exist already
    return rows


def main() -> None:
    """Read the command line and print a table per architecture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ["g_transformer", "rst_mix", "global_context"]
    parser.add_argument("--architectures", nargs="+", choices=ARCHITECTURES, default=default)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--documents", type=int, default=32)
    options = parser.parse_args()
    devices = "cuda", "cpu"
    with (
        mock.patch.object(losses, "COMPILED_CHUNKS", devices),
        mock.patch.object(losses, "ALIGNED", devices),
    ):
        for architecture in options.architectures:
            rows = measure(architecture, options.size, options.documents)
            print(f"\n| {architecture}, {options.size} | launches | GB |\n|---|---:|---:|")
            for part, (n, gigabytes) in rows.items():
                print(f"| {part} | {n} | {gigabytes:.2f} |")
            total, gigabytes = (sum(column) for column in zip(*rows.values(), strict=True))
            print(f"| sum | {total} | {gigabytes:.2f} |", flush=True)


if __name__ == "__main__":
    main()
