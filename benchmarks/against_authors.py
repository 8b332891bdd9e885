"""Compare G-Transformer with its authors' code, with the same random weights and documents, in float64.

Usage: `python benchmarks/against_authors.py --code FOLDER`

FOLDER is a checkout of github.com/baoguangsheng/g-transformer (tested with dcc7695), including its fairseq. The script
prints a JSON line per comparison with the largest differences in encoder states, logits, loss and gradients. They
should only come from rounding. docs/experiments/models.md lists them, and docs/deviations.md describes differences by
design.
"""

import argparse
import collections.abc
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.instances.packing import PackedSentences
from docmt.models.batch import pack
from docmt.models.presets import ARCHITECTURES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS
from docmt.training.loss import LossModule

N_SYMBOLS, WIDTH, HEADS, INNER, LAYERS, SMOOTHING, N_DOCUMENTS = 50, 32, 4, 64, 3, 0.1, 20
# docmt's architecture. The authors' --doc-mode and layers with global attention of encoder, decoder and cross-attention
COMPARED = (
    ("g_transformer", "partial", (2, 2, 2)),
    ("g_transformer_no_target_context", "partial", (2, 0, 2)),
    ("g_transformer_no_source_context", "partial", (0, 2, 0)),
    ("g_transformer_only_group", "partial", (0, 0, 0)),
    ("document_transformer", "full", (2, 2, 2)),
)
SUBLAYERS = {
    "self_sublayer.norm": "self_attn_layer_norm",
    "cross_sublayer.norm": "encoder_attn_layer_norm",
    "feed_forward_sublayer.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
}
Documents = list[tuple[list[np.ndarray], list[np.ndarray]]]


class Authors:
    """The authors' code under current Python and torch, and the ids of its symbols."""

    def __init__(self, folder: Path) -> None:
        # Names that Python and NumPy have dropped since.
        collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
        for name, kind in (("float", float), ("int", int), ("bool", bool)):
            if name not in np.__dict__:
                setattr(np, name, kind)
        sys.path.insert(0, str(folder))
        utils: Any = importlib.import_module("fairseq.utils")
        # Theirs round softmax to float32, whatever they compute in.
        utils.softmax = lambda x, dim, onnx_trace=False: F.softmax(x, dim=dim)
        utils.log_softmax = lambda x, dim, onnx_trace=False: F.log_softmax(x, dim=dim)
        self.models = importlib.import_module("fairseq.models.gtransformer")
        self.loss = importlib.import_module("fairseq.criterions.label_smoothed_cross_entropy").label_smoothed_nll_loss
        self.symbols = importlib.import_module("fairseq.data.dictionary").Dictionary()
        while len(self.symbols) < N_SYMBOLS - 3:
            self.symbols.add_symbol(f"w{len(self.symbols)}")
        source, target, mask = (self.symbols.add_symbol(name) for name in ("[en]", "[de]", "<mask>"))
        first = [self.symbols.pad(), self.symbols.bos(), self.symbols.eos(), self.symbols.unk(), mask, target]
        # docmt's id → theirs. The last word of docmt is their `[en]`, which no document has.
        self.ids = torch.tensor([*first, *range(4, N_SYMBOLS - 3), source])

    def build(self, mode: str, context_layers: tuple[int, int, int]) -> Any:
        """A model with random weights. Biases and norms differ from 0 and 1."""
        sizes = {"embed_dim": WIDTH, "ffn_embed_dim": INNER, "layers": LAYERS, "attention_heads": HEADS}
        options: dict[str, Any] = {f"{side}_{key}": n for side in ("encoder", "decoder") for key, n in sizes.items()}
        options |= dict(zip(("encoder_ctxlayers", "decoder_ctxlayers", "cross_ctxlayers"), context_layers, strict=True))
        options |= {f"{side}_{key}": None for side in ("encoder", "decoder") for key in ("layers_to_keep",)}
        options |= {"encoder_layerdrop": 0, "decoder_layerdrop": 0, "quant_noise_pq": 0, "quant_noise_pq_block_size": 8}
        options |= {
            "source_lang": "en",
            "target_lang": "de",
            "doc_mode": mode,
            "doc_attn_entropy": True,
            "dropout": 0.0,
        }
        options |= {"share_all_embeddings": True, "max_source_positions": 1024, "max_target_positions": 1024}
        arguments = SimpleNamespace(**options, no_token_positional_embeddings=False)
        self.models.gtransformer_base(arguments)
        task = SimpleNamespace(source_dictionary=self.symbols, target_dictionary=self.symbols)
        model = self.models.GTransformerModel.build_model(arguments, task).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(0.3 * torch.randn_like(parameter))
        return model

    def tensor_of(self, name: str, theirs: Mapping[str, Tensor]) -> Tensor:
        """The authors' tensors for a docmt parameter, in docmt's order."""
        if name == "embedding.weight":
            return theirs["encoder.embed_tokens.weight"][self.ids]
        side, number, module = name.split(".", 2)
        prefix = f"{side}.layers.{number}."
        for ours, official in (("self_attention.", "self_attn"), ("cross_attention.", "encoder_attn")):
            if not module.startswith(ours):
                continue
            part = module.removeprefix(ours)
            if part.startswith("gate."):
                return theirs[f"{prefix}{official}_gate.0.{part.removeprefix('gate.')}"]
            kind = f"{official}_{'global' if part.startswith('global_.') else 'local'}"
            part = part.removeprefix("global_.").removeprefix("group.")
            if part.startswith("out."):
                return theirs[f"{prefix}{kind}.out_proj.{part.removeprefix('out.')}"]
            return torch.cat([theirs[f"{prefix}{kind}.{letter}_proj.{part.removeprefix('in_')}"] for letter in "qkv"])
        sublayer, kind = module.rsplit(".", 1)
        return theirs[f"{prefix}{SUBLAYERS[sublayer]}.{kind}"]


def random_documents() -> Documents:
    """Documents with 1 to 6 sentence pairs and 1 to 9 words per sentence."""
    generator = np.random.default_rng(5)

    def sentence() -> np.ndarray:
        words = generator.integers(N_SPECIALS, N_SYMBOLS - 1, generator.integers(1, 10))
        return np.array([BOS, *words, EOS], dtype=np.int32)

    counts = generator.integers(1, 7, N_DOCUMENTS)
    return [([sentence() for _ in range(n)], [sentence() for _ in range(n)]) for n in counts]


def compare(
    authors: Authors, architecture: str, mode: str, layers: tuple[int, int, int]
) -> Iterator[tuple[str, float]]:
    """Largest differences by name. The authors' decoder reads docmt's target stream."""
    torch.manual_seed(3)
    theirs = authors.build(mode, layers)
    sizes = {"width": WIDTH, "heads": HEADS, "feed_forward_width": INNER, "dropout": 0.0}
    sizes |= {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "form": {"position_offset": 2}}
    settings = ModelSettings.load(sizes | ARCHITECTURES[architecture], where="benchmark")
    ours = build_transformer(settings, N_SYMBOLS).double().eval()
    weights = dict(theirs.named_parameters())
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            parameter.copy_(authors.tensor_of(name, weights))
    pad = authors.symbols.pad()
    for src, tgt in random_documents():
        batch = pack(PackedSentences.of(src, tgt, np.array([len(src)])), settings=settings)
        tokens_1S, inputs_1N, labels_1N = (
            authors.ids[ids][None] for ids in (batch.src_tokens_S, batch.tgt_inputs_N, batch.tgt_labels_N)
        )
        assert EOD not in batch.tgt_inputs_N
        memory = theirs.encoder(tokens_1S, src_lengths=torch.tensor([tokens_1S.shape[1]]))
        output = theirs.decoder(inputs_1N, encoder_out=memory)
        memory_SD = ours.encode(batch.src_tokens_S, ours.place(batch.layout))
        yield "encoder states", (memory.encoder_out[:, 0] - memory_SD).abs().max().item()
        logits_NV = ours.logits(ours.decode(batch.tgt_inputs_N, memory_SD, ours.place(batch.layout)))
        yield "logits", (output[0][0][:, authors.ids] - logits_NV).abs().max().item()
        log_p = theirs.get_normalized_probs(output, log_probs=True).view(-1, N_SYMBOLS)
        loss, _ = authors.loss(log_p, labels_1N.view(-1, 1), SMOOTHING, ignore_index=pad)
        our_loss = LossModule(ours, SMOOTHING)(batch.prepare("padded"))
        yield "loss", abs(loss.item() - our_loss.item()) / loss.item()
        theirs.zero_grad()
        ours.zero_grad()
        loss.backward()
        our_loss.backward()
        gradients = {
            name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for name, parameter in theirs.named_parameters()
        }
        for name, parameter in ours.named_parameters():
            expected = authors.tensor_of(name, gradients)
            yield "gradients", (expected - (0 if parameter.grad is None else parameter.grad)).abs().max().item()


def main() -> None:
    """Compare all architectures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--code", type=Path, help="folder of the authors' code, with fairseq/")
    folder = parser.parse_args().code
    if folder is None:
        print("against_authors.py: skipped without --code")
        return
    torch.set_num_threads(1)
    authors = Authors(folder)
    for architecture, mode, layers in COMPARED:
        worst: dict[str, float] = {}
        for name, difference in compare(authors, architecture, mode, layers):
            worst[name] = max(worst.get(name, 0.0), difference)
        rounded = {name: float(f"{value:.1e}") for name, value in worst.items()}
        print(json.dumps({"architecture": architecture, "doc_mode": mode, "context_layers": layers, **rounded}))


if __name__ == "__main__":
    main()
