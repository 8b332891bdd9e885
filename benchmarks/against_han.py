"""Compare HAN's context module with its authors' code, with the same random weights and documents, in float64.

Usage: `python benchmarks/against_han.py --code FOLDER`

FOLDER is a checkout of github.com/idiap/HAN_NMT (tested with 2564826). The script loads the modules from there, because
their license is the GPL 3. It prints JSON lines with the largest output difference, first for the unchanged code, and
then after changing parts that docs/baseline-deviations.md lists to docmt's version. These parts are the norm (the
authors' code divides by the unbiased deviation), the feed-forward module (the authors' code has a norm before it and a
residual), and the bias of the gate.
"""

import argparse
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from docmt.models.attention.layout import AttentionLayout, DeviceLayout
from docmt.models.presets import ARCHITECTURES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import PackedReader
from docmt.models.systems.context_transformer import build_transformer
from docmt.models.systems.han import EncoderHan, HierarchicalAttention

WIDTH, HEADS, INNER, N_DOCUMENTS, PADDING = 32, 8, 64, 20, 1
NORMS = {
    "layer_norm_query_word": "words_norm",
    "layer_norm_query_sent": "sentences_norm",
    "layer_norm_word": "vectors_norm",
    "layer_norm_sent": "norm",
}
PARTS = ("norm", "feed-forward", "bias of the gate")


def load_authors(folder: Path) -> type[nn.Module]:
    """The authors' class from three files. The rest of the package needs torchtext."""
    package, modules = ModuleType("onmt"), ModuleType("onmt.modules")
    package.__path__ = modules.__path__ = []  # type: ignore[attr-defined]
    sys.modules |= {"onmt": package, "onmt.modules": modules}
    vars(package)["modules"] = modules

    def load(name: str, **names: Any) -> dict[str, Any]:
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(names)
        path = folder / "full_source" / f"{name.replace('.', '/')}.py"
        # Python 2 let them mix blanks and tabs.
        exec(compile(path.read_text(encoding="utf-8").expandtabs(8), str(path), "exec"), vars(module))
        return vars(module)

    for name, members in (("Utils", ("aeq",)), ("Models", ("EncoderBase", "DecoderState"))):
        sys.modules[f"onmt.{name}"] = ModuleType(f"onmt.{name}")
        vars(sys.modules[f"onmt.{name}"]).update(dict.fromkeys(members, lambda *_: None))
    for name, member in (("Embeddings", "PositionalEncoding"), ("Attention", "Attention")):
        sys.modules[f"onmt.modules.{name}"] = ModuleType(name)
        vars(sys.modules[f"onmt.modules.{name}"])[member] = None
    for name in ("UtilClass", "MultiHeadedAttn"):
        content = load(f"onmt.modules.{name}")
        vars(modules).update({key: value for key, value in content.items() if isinstance(value, type)})
    return load("onmt.modules.HierarchicalContext")["HierarchicalContext"]


def copy_weights(ours: HierarchicalAttention, theirs: Any) -> None:
    """Copy docmt's weights to the authors' module, after moving them away from 0 and 1."""
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for official, name in NORMS.items():
            getattr(theirs, official).a_2.copy_(getattr(ours, name).weight)
            getattr(theirs, official).b_2.copy_(getattr(ours, name).bias)
        for official, attention in ((theirs.word_attn, ours.words), (theirs.sent_attn, ours.sentences)):
            weights, biases = attention.in_weight.chunk(3), attention.in_bias.chunk(3)
            maps = (official.linear_query, official.linear_keys, official.linear_values, official.final_linear)
            for linear, weight, bias in zip(
                maps, (*weights, attention.out.weight), (*biases, attention.out.bias), strict=True
            ):
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
        for official, linear in (
            (theirs.feed_forward.w_1, ours.feed_forward.inner),
            (theirs.feed_forward.w_2, ours.feed_forward.outer),
        ):
            official.weight.copy_(linear.weight)
            official.bias.copy_(linear.bias)
        # Their gate weighs the context, ours the input.
        theirs.linear.weight.copy_(-ours.gate.weight)


def make_alike(theirs: Any, part: str) -> None:
    """Replace a part of the authors' module with docmt's version."""
    if part == "norm":
        for official in NORMS:
            norm = getattr(theirs, official)
            norm.forward = lambda x, norm=norm: nn.functional.layer_norm(x, x.shape[-1:], norm.a_2, norm.b_2)
    elif part == "feed-forward":
        module = theirs.feed_forward
        module.forward = lambda x: module.w_2(module.w_1(x).relu())
    else:
        nn.init.zeros_(theirs.linear.bias)


def outputs(ours: HierarchicalAttention, theirs: Any, settings: ModelSettings) -> tuple[Tensor, Tensor, np.ndarray]:
    """Outputs of both modules for the same states [S, D], and sentence numbers in the documents."""
    generator = np.random.default_rng(1)
    counts_B = generator.integers(1, 7, N_DOCUMENTS)
    lengths_G = generator.integers(2, 10, counts_B.sum())
    states_SD = torch.from_numpy(generator.normal(size=(lengths_G.sum(), WIDTH)))
    layout = AttentionLayout.of_source(lengths_G, counts_B, settings=settings)
    with torch.no_grad():
        mine_SD = ours(states_SD, PackedReader(DeviceLayout.of(layout, "padded"), "src"))
        padded_LGD = nn.utils.rnn.pad_sequence(list(states_SD.split(lengths_G.tolist())))
        tokens_LG1 = torch.full((*padded_LGD.shape[:2], 1), PADDING)
        for number, length in enumerate(lengths_G):
            tokens_LG1[:length, number] = PADDING + 1
        starts = (np.cumsum(counts_B) - counts_B).tolist()
        other_LGD, *_ = theirs(tokens_LG1, padded_LGD, padded_LGD, starts)
    other_SD = torch.cat([other_LGD[:length, number] for number, length in enumerate(lengths_G)])
    numbers_G = np.concatenate([np.arange(count) for count in counts_B])
    return mine_SD, other_SD, np.repeat(numbers_G, lengths_G)


def main() -> None:
    """Compare the unchanged module, and then the module after changing one part after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--code", type=Path, help="folder of the authors' code, with full_source/")
    folder = parser.parse_args().code
    if folder is None:
        print("against_han.py: skipped without --code")
        return
    torch.manual_seed(1)
    sizes = {"width": WIDTH, "heads": HEADS, "feed_forward_width": INNER, "dropout": 0.0}
    settings = ModelSettings.load(sizes | ARCHITECTURES["han_encoder"], where="benchmark")
    model = build_transformer(settings, 50).double().eval()
    assert isinstance(model.context, EncoderHan)
    ours, theirs = model.context.encoder, load_authors(folder)(WIDTH, 0.0, HEADS, INNER, None, 3, PADDING).double()
    copy_weights(ours, theirs.eval())
    alike: list[str] = []
    for part in (None, *PARTS):
        if part is not None:
            make_alike(theirs, part)
            alike.append(part)
        mine_SD, other_SD, numbers_S = outputs(ours, theirs, settings)
        difference_S = (mine_SD - other_SD).abs().amax(1).numpy()
        with_context, without = difference_S[numbers_S > 0].max(), difference_S[numbers_S == 0].max()
        row = {"made alike": ", ".join(alike) or "nothing", "with context": with_context, "first sentences": without}
        print(
            json.dumps({key: value if isinstance(value, str) else float(f"{value:.1e}") for key, value in row.items()})
        )


if __name__ == "__main__":
    main()
