"""Training and decoding speed on a device, time by kernel type, and the published computation's speed."""

import itertools
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, supported_activities
from torch.utils.benchmark import Timer

from benchmarks.flops import training_flops
from benchmarks.gpu.dense import dense_loss
from benchmarks.gpu.environment import GIB
from benchmarks.gpu.outcomes import NOT_COMPILED, Outcome
from benchmarks.gpu.rows import Check
from benchmarks.gpu.workload import QUIET, Workload, kernel_of, model_settings
from docmt.decoding.incremental_decoder import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.models.batch import DeviceBatch
from docmt.models.gpus import CAPABILITY_WITH_BFLOAT16
from docmt.models.numerics import CHUNK_SCORES
from docmt.models.systems.context_transformer import build_transformer
from docmt.training.compiling import CompiledLoss, compiled_loss
from docmt.training.devices import prepare_cuda
from docmt.training.loss import LossModule, loss_and_gradients

SMALL = {"tiny", "small"}  # CPU sizes, with a small vocabulary and fewer repetitions
SENTENCES, SHORTEST, LONGEST = 17, 8, 48
"""Sentences per instance and words per sentence, for about 512 tokens as in the papers."""
UPDATES = 12  # updates on several devices
CLASSES = {
    "attention": r"attention|attend|flash|fmha|varlen|short_group",
    "products": r"gemm|matmul|cutlass|nvjet|xmma|cublas|aten::(addmm|mm|bmm|baddbmm)$",
}
"""Name patterns for kernels (on a CPU: torch operators). The first match counts."""
SLOW_STEP = 0.15  # limit in seconds for a search step on a GPU. A longer step plans or compiles anew


class Speed:
    """G-Transformer measurements in one size, in half precision if the device has it.

    `tokens` is the approximate number of tokens per update and side. `rows` contains earlier outcomes, for comparisons.
    """

    def __init__(self, device: torch.device, folder: Path, *, size: str, tokens: int, rows: dict[str, Outcome]) -> None:
        self.device, self.folder, self.rows = device, folder, rows
        self.settings, self.tokens = model_settings("g_transformer", size), tokens
        self.is_small = size in SMALL
        self.sizes = {"shortest": SHORTEST, "longest": LONGEST, "n_symbols": 2_000 if self.is_small else 30_000}
        n_sentences = max(1, tokens // ((SHORTEST + LONGEST) // 2 + 2))
        self.n_instances = max(1, round(n_sentences / SENTENCES))
        self.counts = [min(SENTENCES, n_sentences)] * self.n_instances
        self.is_cuda = device.type == "cuda"
        has_bfloat16 = self.is_cuda and torch.cuda.get_device_capability() >= CAPABILITY_WITH_BFLOAT16
        self.dtype = torch.bfloat16 if has_bfloat16 else torch.float16 if self.is_cuda else torch.float32
        self.repetitions = 2 if self.is_small else 10

    def checks(self) -> dict[str, Check]:
        """Return measurements by name. Later measurements are compared with earlier ones."""
        checks = (self.products, self.eager, self.compiled, self.shares, self.decoding, self.published)
        return {f"speed/{check.__name__}": check for check in checks}

    @cached_property
    def workload(self) -> Workload:
        return Workload(self.folder, self.counts, **self.sizes)

    @cached_property
    def module(self) -> LossModule:
        torch.manual_seed(0)
        return LossModule(build_transformer(self.settings, self.sizes["n_symbols"]), 0.1).to(self.device).train()

    @cached_property
    def graph(self) -> CompiledLoss | None:
        return compiled_loss(self.module, kernel_of(self.module.model, self.dtype))

    def batch(self, n: int | None = None) -> DeviceBatch:
        return self.workload.batch(self.module.model, self.dtype, n=n)

    def seconds(self, function: Callable[[], Any]) -> float:
        """Return the mean time per call after warm-up calls, without synchronization between calls."""
        timer = Timer("function()", globals={"function": function}, num_threads=torch.get_num_threads())
        return timer.timeit(self.repetitions).mean

    def _wait(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize()

    def products(self) -> Outcome:
        """Measure the rate of large matrix products, as reference for MFU."""
        n = 512 if self.is_small else 16 * self.settings.width  # 8192 for size base
        a, b = (torch.randn(n, n, device=self.device, dtype=self.dtype) for _ in range(2))
        rate = 2e-12 * n**3 / self.seconds(lambda: a @ b)
        return Outcome(f"{rate:.3g} TFLOP/s in {self.dtype}".replace("torch.", ""), numbers={"tflops": rate})

    def _update(self, loss: Callable[[Any], Tensor], batch: Any, optimizer: torch.optim.Optimizer) -> Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            value = loss(batch)
        (value / len(batch.tgt_labels_N)).backward()
        optimizer.step()
        optimizer.zero_grad()
        return value.detach()

    def _measured(self, loss: Callable[[Any], Tensor], batch: Any, n: int | None = None) -> dict[str, float]:
        """Measure update time (forward, backward, Adam), rates and peak memory, for a batch of n instances."""
        optimizer = torch.optim.Adam(self.module.parameters(), lr=0.0, fused=True)
        if self.is_cuda:
            prepare_cuda("auto")
            torch.cuda.reset_peak_memory_stats()
        seconds = self.seconds(lambda: self._update(loss, batch, optimizer))
        n_tokens = len(batch.src_tokens_S) + len(batch.tgt_inputs_N)
        numbers = {"ms": 1e3 * seconds, "tokens_per_second": n_tokens / seconds}
        products = self.rows.get("speed/products")
        if products is not None and "tflops" in products.numbers:
            rate = 1e12 * products.numbers["tflops"]
            flops = training_flops(self.module.model, self.workload.host_batch(self.settings, n=n))
            numbers["mfu"] = flops / seconds / rate
        if self.is_cuda:
            numbers["peak_gib"] = torch.cuda.max_memory_allocated() / GIB
        return numbers

    def eager(self) -> Outcome:
        """Measure an update without the compiler."""
        numbers = self._measured(self.module, self.batch())
        return Outcome(_describe(numbers), numbers=numbers)

    def compiled(self) -> Outcome:
        """Measure an update as one graph, with another graph for loss chunks. More graphs mean recompilation."""
        if self.graph is None:
            return NOT_COMPILED
        from torch._dynamo.utils import counters

        if self.is_cuda:
            prepare_cuda("auto")  # sets a torch switch that graphs depend on
        batch, before = self.batch(), counters["stats"]["unique_graphs"]
        started = time.perf_counter()
        with torch.no_grad(), torch.autocast(self.device.type, self.dtype):
            expected = self.module(batch)
        loss = self._update(self.graph, batch, torch.optim.Adam(self.module.parameters(), lr=0.0))
        self._wait()
        compile_seconds = time.perf_counter() - started
        for n in range(1, 6):
            self._update(self.graph, self.batch(n), torch.optim.Adam(self.module.parameters(), lr=0.0))
        numbers = self._measured(self.graph, batch)
        numbers |= {"compile_seconds": compile_seconds, "graphs": counters["stats"]["unique_graphs"] - before}
        numbers["loss_difference"] = float((loss - expected).abs() / expected)
        value = f"{_describe(numbers)}, {compile_seconds:.0f} s to compile, {numbers['graphs']} graphs for 6 shapes"
        if self.graph.compiled is None:
            return Outcome(f"the compiler or its graph failed: {self.graph.failure}", "FAILED", numbers)
        if not numbers["loss_difference"] < 0.02:  # dropout draws other random numbers
            return Outcome(f"{value}; loss differs by {numbers['loss_difference']:.2g}", "FAILED", numbers)
        return Outcome(value, numbers=numbers)

    def shares(self) -> Outcome:
        """Measure device time shares for the loss and, by kernel name, for attention and matrix products."""
        batch, model = self.batch(), self.module.model
        optimizer = torch.optim.Adam(self.module.parameters(), lr=0.0, fused=True)
        graph = self.graph if self.graph is not None and self.graph.compiled is not None else None

        def states(batch: DeviceBatch) -> Tensor:
            return model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout).float().sum()

        used, launches, busy = self._profiled(lambda: self._update(graph or self.module, batch, optimizer))
        is_compiled = graph is not None and graph.compiled is not None  # unless the compiler failed in this update
        table_VD = model.embedding.weight.detach()
        hidden_ND = torch.randn(len(batch.tgt_labels_N), table_VD.shape[1], device=self.device, dtype=self.dtype)
        arguments = hidden_ND, table_VD, batch.tgt_labels_N, 0.1, self.dtype, model.output_bias
        chunk_scores = CHUNK_SCORES["cuda"] if is_compiled else 0
        loss, *_ = self._profiled(lambda: loss_and_gradients(*arguments, chunk_scores))
        # The compiler changes all kernel names except attention and matrix products.
        alone, *_ = self._profiled(lambda: self._update(states, batch, optimizer))
        share = {"loss": loss.total() / used.total(), **{name: alone[name] / used.total() for name in CLASSES}}
        share["rest"] = max(0.0, 1 - sum(share.values()))
        value = ", ".join(f"{name} {100 * part:.0f} %" for name, part in share.items())
        if launches:
            value += f"; {launches} launches, GPU busy {100 * busy:.0f} % of the time"
        what = "compiled" if is_compiled else "eager"
        return Outcome(f"{what}: {value}", numbers={**share, "launches": launches, "busy": busy})

    def _profiled(self, function: Callable[[], Any]) -> tuple[Counter[str], int, float]:
        """Return seconds per call by kernel class, number of kernels, and the share of time when a kernel is running.

        The fastest call is used, since other work on the machine only adds time.
        """
        has_kernels = ProfilerActivity.CUDA in supported_activities() and self.is_cuda
        calls = []
        for _ in range(min(3, self.repetitions)):
            function()
            self._wait()
            started = time.perf_counter()
            with profile(activities=[ProfilerActivity.CUDA if has_kernels else ProfilerActivity.CPU]) as profiler:
                function()
                self._wait()
                elapsed = time.perf_counter() - started
            seconds: Counter[str] = Counter()
            launches = 0
            for event in profiler.key_averages():
                if has_kernels and event.device_type.name != "CUDA":
                    continue  # CPU calls that launch kernels
                key = next((key for key, sign in CLASSES.items() if re.search(sign, event.key, re.IGNORECASE)), "rest")
                seconds[key] += 1e-6 * (event.self_device_time_total if has_kernels else event.self_cpu_time_total)
                launches += event.count * (has_kernels and not event.key.startswith(("Memcpy", "Memset")))
            calls.append((seconds, launches, seconds.total() / elapsed))
        return min(calls, key=lambda call: call[0].total())

    def published(self) -> Outcome:
        """Measure the same update with the published computation, with fewer instances if memory runs out."""
        model, n = self.module.model, self.n_instances
        while True:
            try:
                batch = self.workload.host_batch(self.settings, n=n)
                numbers = self._measured(lambda batch: dense_loss(model, batch, 0.1, with_entropies=True), batch, n)
                break
            except torch.OutOfMemoryError:
                if n == 1:
                    raise
            self.module.zero_grad()
            torch.cuda.empty_cache()
            n //= 2
        value = _describe(numbers) + (f", {n} of {self.n_instances} instances fit" if n < self.n_instances else "")
        for name in ("eager", "compiled"):
            row = self.rows.get(f"speed/{name}")
            if row is not None and row.verdict != "FAILED" and "tokens_per_second" in row.numbers:
                numbers[f"{name}_gain"] = row.numbers["tokens_per_second"] / numbers["tokens_per_second"]
                value += f"; docmt's {name} update is {numbers[f'{name}_gain']:.2g} × as fast"
        return Outcome(value, numbers=numbers)

    def decoding(self) -> Outcome:
        """Measure beam search and its steps, with as many target as source words. On a GPU, the batch is full."""
        trained = self.workload.trained(self.settings)
        settings = DecodingSettings(max_length_ratio=1.0, max_length_offset=1)
        translator = Translator(trained, settings, device=self.device.type)
        sources = self.workload.sources(self.settings)
        # Other shapes than below, so that libraries are loaded, but nothing is planned for the measured shapes.
        list(translator.translate_sources(sources[: max(1, len(sources) // 3)]))
        if self.is_cuda and not self.is_small:
            n = translator.batch_tokens // max(source.n_tokens for source in sources)
            sources = list(itertools.islice(itertools.cycle(sources), n))
        steps, step = [], IncrementalDecoder.step

        def timed(self: IncrementalDecoder, *arguments: Tensor) -> Tensor:
            started = time.perf_counter()
            scores = step(self, *arguments)
            steps.append(time.perf_counter() - started)
            return scores

        started = time.perf_counter()
        with mock.patch.object(IncrementalDecoder, "step", timed):
            hypotheses = [hypothesis for _, hypothesis in translator.translate_sources(sources)]
        self._wait()
        seconds = time.perf_counter() - started
        words = sum(len(sentence) for hypothesis in hypotheses for sentence in hypothesis.sentences)
        rate, mean, slowest = words / seconds, 1e3 * seconds / len(steps), 1e3 * max(steps)
        numbers = {"words_per_second": rate, "steps": len(steps), "ms_per_step": mean, "slowest_ms": slowest}
        numbers["instances"] = len(sources)
        value = f"{rate:,.0f} words/s, {len(sources)} instances, "
        value += f"{len(steps)} steps of {mean:.1f} ms, the slowest {slowest:.0f} ms"
        if self.is_cuda and max(steps) > max(SLOW_STEP, 10 * statistics.median(steps)):
            return Outcome(f"{value}: something plans or compiles anew within the search", "FAILED", numbers)
        return Outcome(value, numbers=numbers)

    def scaling(self, names: Sequence[str]) -> Outcome:
        """Measure uncompiled trainings with n times larger updates on n devices, in tokens per second."""
        n, rates = len(names), []
        recipe = QUIET | {"max_steps": UPDATES, "log_every_steps": UPDATES // 2}
        recipe["max_batch_tokens"] = max(1024, self.tokens // 4)
        with tempfile.TemporaryDirectory() as folder:
            workload = Workload(Path(folder), [SENTENCES] * (2 * n * max(1, self.tokens // 512)), **self.sizes)
            for some in (names[:1], names):
                recipe["accumulation_steps"] = 4 * len(some)
                history = workload.train_on(some, self.settings, is_cuda=self.is_cuda, **recipe)
                rates.append(history["tokens_per_second"][-1])
        numbers = {"tokens_per_second": rates[1], "scaling": rates[1] / rates[0]}
        return Outcome(f"{n} devices: {rates[1]:,.0f} tokens/s, {rates[1] / rates[0]:.2f} × one", numbers=numbers)


def _describe(numbers: dict[str, float]) -> str:
    mfu = f", MFU {100 * numbers['mfu']:.0f} %" if "mfu" in numbers else ""
    peak = f", peak {numbers['peak_gib']:.1f} GiB" if "peak_gib" in numbers else ""
    return f"{numbers['ms']:,.1f} ms, {numbers['tokens_per_second']:,.0f} tokens/s{mfu}{peak}"
