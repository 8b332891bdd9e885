"""Model files: weights, settings, vocabulary, text pipeline and provenance in one file."""

import hashlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.overrides

from docmt.discourse.bundle import DiscourseBundle
from docmt.errors import UserError
from docmt.files import atomic_path, read_bytes
from docmt.instances.cutting import split_document
from docmt.instances.packing import BoundaryTokens
from docmt.instances.settings import InstancesSettings
from docmt.languages import language_of
from docmt.models.settings import Context, MarkSettings, ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.models.systems.transformer import Transformer
from docmt.tensor_files import read_tensors
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import GAP_MASK, TOKEN_MASK, Vocabulary

if TYPE_CHECKING:
    from docmt.discourse.annotation import BundleAnnotator

FORMAT = 1
KIND = "translation model"
KEYS = {"model": dict, "weights": dict, "vocabulary": list, "pipeline": dict, "instances": dict, "provenance": dict}
"""Required keys and their types."""
WEIGHT_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


@dataclass(frozen=True)
class TrainedModel:
    """A model with everything that translation needs.

    The model is on the CPU in evaluation mode. Source and target share the vocabulary. `instance_settings` come from
    the training instances. `discourse` is a segmenter with a parser, for models that read trees. Default: None.
    """

    model: Transformer
    vocabulary: Vocabulary
    pipeline: TextPipeline
    instance_settings: dict[str, Any]
    provenance: dict[str, Any]
    discourse: DiscourseBundle | None = None

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages that a multilingual model translates between. Empty for a model with one language pair."""
        tags = tuple(tag[1:-1] for tag in self.vocabulary.extras if tag not in (GAP_MASK, TOKEN_MASK))
        if self.model.settings.marks is not None and len(tags) > 2:
            return tags
        return ()

    def for_languages(self, src_lang: str | None, tgt_lang: str | None) -> "TrainedModel":
        """Return the model for another language pair. None keeps a language.

        Raises UserError for languages that the model does not support.
        """
        now = (self.pipeline.src_lang, self.pipeline.tgt_lang)
        codes = self.languages or now

        def spell(lang: str) -> str:
            """Return the model's code for a language, for example `deu` for `de` or `zh` for `zh-CN`."""
            if lang in codes:
                return lang
            return next((code for code in codes if language_of(code) == language_of(lang)), lang)

        pair = (spell(src_lang or now[0]), spell(tgt_lang or now[1]))
        if pair == now:
            return self
        if not self.languages:
            raise UserError(f"language pair {'-'.join(pair)}: this model translates {'-'.join(now)} only")
        unknown = [lang for lang in pair if lang not in self.languages]
        if unknown:
            raise UserError(f"language {unknown[0]!r}: this model supports {' '.join(sorted(self.languages))}")
        return replace(self, pipeline=self.pipeline.for_languages(pair))

    @cached_property
    def marks(self) -> BoundaryTokens:
        """Boundary tokens before and after sentences."""
        return boundary_tokens(self.model.settings.marks, self.vocabulary, self.pipeline)

    @cached_property
    def annotator(self) -> "BundleAnnotator":
        """Segmenter and parser from the file. Only for models with `discourse`."""
        from docmt.discourse.annotation import BundleAnnotator  # parsers take time to import

        assert self.discourse is not None
        return BundleAnnotator(self.discourse, lang=self.pipeline.src_lang)

    def encode(self, sentence: str, side: Literal["src", "tgt"]) -> np.ndarray:
        """Return the token ids for a plain sentence, with boundary tokens. int32."""
        subwords = self.pipeline.prepare(sentence, lang=getattr(self.pipeline, f"{side}_lang"))
        return self.marks.wrap(self.vocabulary.encode(subwords), side)

    def split(self, costs: Sequence[int], *, context: Context = "document") -> list[int]:
        """Return the number of sentences per instance for a document, by the limits that the model was trained with.

        `costs` are tokens per sentence, boundary tokens included. Documents of joined sentences are split from the end,
        so that the last sentence, which most suites test, has as much context as possible.
        """
        step = -1 if context == "joined" else 1
        limits = self.limits
        counts = split_document(costs[::step], max_tokens=limits.max_tokens, max_sentences=limits.max_sentences)
        return counts[::step]

    @cached_property
    def limits(self) -> InstancesSettings:
        """Instance limits that the model was trained with. Raises UserError if the file has invalid limits."""
        values = {
            key: self.instance_settings[key] for key in ("max_tokens", "max_sentences") if key in self.instance_settings
        }
        return InstancesSettings.load(values, where="model: instances")


def boundary_tokens(
    symbols: MarkSettings | None, vocabulary: Vocabulary, pipeline: TextPipeline, *, both: str | None = None
) -> BoundaryTokens:
    """Return a model's boundary tokens in training and decoding.

    Without `marks` in the settings, language tags are used if the vocabulary has tags. `both` is the language on both
    sides, for restoration.
    """
    langs = {"src_lang": both or pipeline.src_lang, "tgt_lang": both or pipeline.tgt_lang}
    if symbols is not None:
        return BoundaryTokens.of_symbols(vocabulary, **langs, **symbols.model_dump())
    if not vocabulary.extras:
        return BoundaryTokens()
    # Tags in place of `<s>`, which is the same everywhere: this loses nothing and costs no token.
    return BoundaryTokens.of_symbols(vocabulary, **langs, src_before=["{src}"], tgt_before=["{tgt}"])


def save_model(path: Path, trained: TrainedModel) -> None:
    """Write a model file. It appears only when it is complete. Equal models give equal bytes under one file name."""
    content = {
        "format": FORMAT,
        "kind": KIND,
        "model": trained.model.settings.model_dump(),
        "weights": trained.model.state_dict(),
        "vocabulary": list(trained.vocabulary.symbols),
        "pipeline": trained.pipeline.to_dict(),
        "instances": trained.instance_settings,
        "provenance": trained.provenance,
    }
    if trained.discourse is not None:
        content["discourse"] = trained.discourse.to_dict()
    with atomic_path(path) as temporary:
        torch.save(_canonical(content, {}), temporary)


def _canonical(value: Any, tensors: dict[Any, torch.Tensor]) -> Any:
    """Copy nested values, so that equal values have equal pickles.

    Pickles refer to an object that occurs twice, for example a string in two settings. After a training was resumed,
    these are two equal strings. Tensors that share memory, such as tied embeddings, still share it in the copy.
    """
    if isinstance(value, torch.Tensor):
        view = (value.untyped_storage().data_ptr(), value.storage_offset(), value.shape, value.stride())
        return tensors.setdefault(view, value.detach().to("cpu", copy=True).contiguous())
    if isinstance(value, Mapping):
        return {_canonical(key, tensors): _canonical(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item, tensors) for item in value]
    if isinstance(value, str):
        return sys.intern(value)
    return value


def weights_digest(weights: Mapping[str, torch.Tensor]) -> str:
    """Return the SHA-256 of names, types, shapes and values, which does not depend on the file that holds them."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_content(path: Path, *, fingerprint: str | None = None) -> dict[str, Any]:
    """Read a model file's content: tensors and plain values only, nothing that could run code.

    Raises UserError if the file is damaged, or was trained with a fingerprint other than `fingerprint`.
    """
    content = read_tensors(
        read_bytes(path),
        where=str(path),
        what="a docmt model file",
        mend="train the model again",
        format=FORMAT,
        kind=KIND,
        keys=KEYS,
    )
    odd = [name for name, kind in KEYS.items() if not isinstance(content[name], kind)]
    if odd or not all(isinstance(symbol, str) for symbol in content["vocabulary"]):
        raise UserError(f"{path}: {odd[0] if odd else 'vocabulary'} is damaged: train the model again")
    recorded = content["provenance"].get("fingerprint")
    if fingerprint not in (None, recorded):
        raise UserError(
            f"{path}: was trained with other settings or data (fingerprint {recorded}) than planned ({fingerprint}): "
            "move it to another folder, and run again to train the planned model, from its checkpoints if there are any"
        )
    return content


class _NoRandomNumbers(torch.overrides.TorchFunctionMode):
    """Skips random initialization, which, on `meta` tensors, would load torch's compiler (2 seconds)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("normal_", "uniform_"):
            if args:
                return args[0]
            return kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def build_model(settings: ModelSettings, n_symbols: int, weights: Any, *, where: str, mend: str) -> Transformer:
    """Return a model with the given weights, converted to float32, in evaluation mode. Weights are not copied."""
    # Tensors on `meta` have shapes but no memory, so a file with absurd settings cannot exhaust it.
    try:
        with torch.device("meta"), _NoRandomNumbers():
            model = build_transformer(settings, n_symbols)
    except (RuntimeError, TypeError):  # sizes beyond 64 bits
        raise UserError(f"{where}: the model size in its settings is impossible: {mend}") from None
    expected, tensors = model.state_dict(), weights if isinstance(weights, dict) else {}
    problems = (
        f"{name} has a different shape or type"
        for name in expected
        if not is_plain(tensors.get(name)) or tensors[name].shape != expected[name].shape
    )
    extra = (f"{name} is not in the model" for name in tensors.keys() - expected.keys())
    problem = next(itertools.chain(problems, extra), None)
    if problem:
        raise UserError(f"{where}: weights and settings do not match ({problem}): {mend}")
    # `assign` takes the tensors over: parameters on `meta` have no memory to copy into.
    model.load_state_dict({name: tensors[name].to(torch.float32) for name in expected}, assign=True)
    return model.eval()


def is_plain(value: Any) -> bool:
    """True if a value is a floating-point tensor on the CPU whose memory holds all its entries.

    The memory behind a view may hold fewer numbers than the view has entries.
    """
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return False
    # Integers and complex numbers would be cast silently. Tensors on `meta` claim memory that is not there.
    return (
        value.dtype in WEIGHT_TYPES
        and value.is_cpu
        and value.numel() * value.element_size() <= value.untyped_storage().nbytes()
    )


def load_model(path: Path, *, fingerprint: str | None = None) -> TrainedModel:
    """Read a model file.

    Raises UserError if it is damaged, contains weights that are not finite, or was trained with a fingerprint other
    than `fingerprint`.
    """
    content = load_content(path, fingerprint=fingerprint)
    vocabulary = Vocabulary.from_symbols(content["vocabulary"])
    settings = ModelSettings.load(content["model"], where=f"{path}: model")
    model = build_model(settings, len(vocabulary), content["weights"], where=str(path), mend="train it again")
    # A diverged training or a damaged file would otherwise show only in its translations.
    broken = next((name for name, value in model.named_parameters() if not torch.isfinite(value).all()), None)
    if broken is not None:
        raise UserError(f"{path}: {broken} contains NaN or infinite weights: train it again")
    pipeline = TextPipeline.from_dict(content["pipeline"])
    bundle = None
    if "discourse" in content:
        bundle = DiscourseBundle.from_dict(content["discourse"], where=str(path))
    trained = TrainedModel(model, vocabulary, pipeline, content["instances"], content["provenance"], bundle)
    try:
        trained.limits  # noqa: B018 - checks them
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return trained
