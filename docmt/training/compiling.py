"""Forward pass and loss as one compiled graph for batches of all shapes, and another graph for validation."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec

import torch
from torch import Tensor
from typing_extensions import override

from docmt.errors import UserError
from docmt.models.attention.kernels import Kernel
from docmt.models.batch import DeviceBatch
from docmt.models.buffers import map_leaves
from docmt.models.settings import ModelSettings
from docmt.training.filling import with_table
from docmt.training.loss import LossModule

log = logging.getLogger(__name__)

MAX_COMPILATIONS = 3  # per pass, one normally serves all batches


def compiled_loss(module: LossModule, kernel: Kernel) -> "CompiledLoss | None":
    """Return the loss of a module as one graph, or None where compiling is not possible or does not pay."""
    if kernel != "varlen":  # padded batches, which CPUs and float32 use, vary in number and size
        return None
    if find_spec("triton") is None:
        log.info("torch.compile is not used: triton is not installed")
        return None
    return CompiledLoss(module)


class CompiledPass:
    """A pass over batches for the variable-length kernel, as one graph by a `torch.compile` backend.

    If the compiler or the graph fails, the pass is computed without a compiler from then on. `compiled` is then None,
    and `failure` is the reason. Out-of-memory errors are raised. `plain` computes the pass from some tensors in a batch
    (int64) and its layout.
    """

    def __init__(
        self, plain: Callable[..., Tensor], parts: Sequence[str], settings: ModelSettings, backend: str | Callable
    ) -> None:
        self.plain, self.parts, self.settings = plain, parts, settings
        self.compiled: Callable[..., Tensor] | None
        self.compiled = torch.compile(plain, fullgraph=True, dynamic=True, backend=backend)
        self.failure = ""

    def __call__(self, batch: DeviceBatch) -> Tensor:
        """Return the result of `plain` for a batch."""
        tokens, layout = [getattr(batch, part) for part in self.parts], batch.layout
        sizes = [*map(len, tokens), *([layout.n_sentences] if layout.reads_context else [])]
        if self.compiled is None or min(sizes) < 2:  # torch specializes graphs to length 1
            return self.plain(*tokens, layout)
        if layout.table_TD is None:
            layout = with_table(layout, self.settings, tokens[0].device)
            # torch.compile specializes size 1, so sizes are at least 2. Padding changes nothing.
            n_instances, longest, most_sentences = layout.padded_sizes
            layout = replace(layout, padded_sizes=(max(2, n_instances), longest, max(2, most_sentences)))
        arguments = *tokens, layout
        try:
            with _options():
                map_leaves(arguments, _mark_any_length)
                return self.compiled(*arguments)
        except Exception as error:
            if not self.disable_if_compiler_failed(error):
                raise
        return self.plain(*tokens, layout)

    def disable_if_compiler_failed(self, error: Exception) -> bool:
        """Disable the compiler if it caused an error. Returns True if so, and the pass can then be repeated."""
        if self.compiled is None or isinstance(error, torch.OutOfMemoryError | MemoryError | UserError):
            return False
        self.failure = " ".join(str(error).split("\n")[:2])
        log.warning("training continues without torch.compile: %s", self.failure)
        self.compiled = None
        return True


class CompiledLoss(CompiledPass):
    """The summed loss, float32, and decoder `states` [N, D] for validation, a graph without a backward pass."""

    def __init__(self, module: LossModule, backend: str | Callable = "inductor") -> None:
        model, inputs = module.model, ("src_tokens_S", "tgt_inputs_N")
        super().__init__(module.loss, (*inputs, "tgt_labels_N"), model.settings, backend)
        self.states = CompiledPass(model.forward, inputs, model.settings, backend)

    @override
    def disable_if_compiler_failed(self, error: Exception) -> bool:
        if not super().disable_if_compiler_failed(error):
            return False
        self.states.compiled = None  # for the same reason, in all likelihood
        return True


@contextlib.contextmanager
def _options() -> Iterator[None]:
    """Set options for `torch.compile` while the loss is computed."""
    from torch import _dynamo as dynamo  # imports take seconds, and CPUs do without
    from torch._functorch import config as differentiation
    from torch._inductor import config as inductor
    from torch.fx.experimental import _config as shapes

    with (
        # Dropout rates and similar floats are constants.
        dynamo.config.patch(recompile_limit=MAX_COMPILATIONS, specialize_float=True),
        # The backward pass is compiled with the forward pass, so that both fail in one place.
        differentiation.patch(force_non_lazy_backward_lowering=True),
        # Otherwise, a graph serves either more or fewer than 10,240 tokens (for a width of 512).
        inductor.patch({"triton.mix_order_reduction_non_strict_mode": True}),  # pyright: ignore[reportAttributeAccessIssue]
        # Lengths that happen to be equal in one batch are not in others.
        shapes.patch(use_duck_shape=False),  # pyright: ignore[reportAttributeAccessIssue]
    ):
        yield


def _mark_any_length(tensor: Tensor) -> Tensor:
    torch._dynamo.mark_dynamic(tensor, 0)
    return tensor
