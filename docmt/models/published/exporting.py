"""From models of docmt to formats of other programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from docmt.errors import UserError
from docmt.files import atomic_path, write_json
from docmt.instances.packing import Marks
from docmt.models.attention.multi_head import MultiHeadAttention
from docmt.models.model_file import TrainedModel
from docmt.models.published.families import EMBEDDING, FAMILIES, config_json, their_weights
from docmt.models.settings import FormSettings, ModelSettings
from docmt.models.systems.transformer import Transformer
from docmt.text.published_text import MODELS
from docmt.text.subwords import EVERY, sentencepiece_models
from docmt.text.vocabulary import BOS, EOD, EOS, PAD, UNK

MAX_POSITIONS = 1024
"""Positions of an exported model with sinusoids."""
README = """\
# A model of docmt for CTranslate2, from {src} to {tgt}

`pipeline.json` splits sentences into subwords, and joins them. With `pip install ctranslate2` and docmt, in this
folder:

```python
import ctranslate2, itertools, pathlib, sys
from docmt.text.pipeline import TextPipeline
pipeline = TextPipeline.load(pathlib.Path("pipeline.json"))
{translation}```
"""
OF_SENTENCE = """\
found = ctranslate2.Translator(".").translate_batch([pipeline.prepare(input(), lang="{src}")], min_decoding_length=1)
print(pipeline.restore(found[0].hypotheses[0], lang="{tgt}"))
"""
OF_DOCUMENT = """\
lines = [[*{before}, *pipeline.prepare(line, lang="{src}"), *{after}] for line in sys.stdin]  # one for each sentence
found = ctranslate2.Translator(".").translate_batch([sum(lines, [])], beam_size=1, max_decoding_length=1024)
for is_mark, words in itertools.groupby(found[0].hypotheses[0], {marks}.__contains__):
    if not is_mark:
        print(pipeline.restore(list(words), lang="{tgt}"))
"""


def is_document_model(settings: ModelSettings) -> bool:
    """Whether a model reads and writes documents as a sentence model does sentences: as one stream, all of it seen.

    Raises UserError for a model that is neither of the two, which no other program computes.
    """
    is_plain = settings.context is None and settings.form.learned_sentences is None
    stream = settings.target_stream, settings.positions
    if is_plain and settings.patterns() == {"global"} and stream == ("free", "instance"):
        return True
    if settings.sees_single_sentences and settings.positions == "sentence":
        return False
    raise UserError(
        "this model cannot be exported: only sentence_transformer and document_transformer can; no other program "
        "knows sentences that see some of a document (G-Transformer, concatenation, …), or as many target sentences"
    )


def export_marian(trained: TrainedModel, folder: Path) -> None:
    """Write a folder in the format of transformers' MarianMTModel.

    Raises UserError for a model that Marian cannot be, such as one whose decoder begins with a learned symbol.
    """
    settings = trained.model.settings
    if is_document_model(settings):
        raise UserError("a Marian model translates sentences, not documents: use --format ctranslate2")
    family, form = FAMILIES["marian"], settings.form.model_dump(exclude={"activation"})
    pieces = sentencepiece_models(trained.pipeline.to_dict()["codes"], where="pipeline")
    expected = FormSettings(**family.form).model_dump(exclude={"activation"})
    if form != expected:
        raise UserError(f"a Marian model computes with form {expected}: use --format ctranslate2")
    if settings.marks is None or settings.marks.model_dump() != family.marks or pieces is None:
        raise UserError("a Marian model needs the marks of Marian and SentencePiece: use --format ctranslate2")
    symbols = trained.vocabulary.symbols
    with atomic_path(folder, checksum=False) as temporary:
        temporary.mkdir()
        write_json(temporary / "vocab.json", {symbol: number for number, symbol in enumerate(symbols)}, checksum=False)
        facts = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": PAD, "bos_token_id": None}
        facts |= {"vocab_size": len(symbols), "bad_words_ids": [[PAD]], "forced_eos_token_id": EOS, "unk_token_id": UNK}
        (temporary / "config.json").write_text(config_json(settings, **facts), encoding="utf-8")
        languages = {"source_lang": trained.pipeline.src_lang, "target_lang": trained.pipeline.tgt_lang}
        tokenizer = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": False, **languages}
        write_json(temporary / "tokenizer_config.json", tokenizer, checksum=False)
        for name, lang in zip(MODELS.values(), languages.values(), strict=True):
            (temporary / name).write_bytes((pieces.get(lang) or pieces[EVERY]).model)
        from safetensors.torch import save_file  # pyright: ignore[reportMissingImports]

        weights = their_weights(trained.model.state_dict(), settings)
        weights[EMBEDDING][PAD] = 0  # which a decoder begins with
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})


def export_ctranslate2(trained: TrainedModel, folder: Path) -> None:
    """Write a model of CTranslate2, its text pipeline and how to use both.

    The model reads and writes the subwords of the pipeline: of a sentence without marks, of documents with them.

    Raises UserError as `ctranslate2_spec` does.
    """
    spec = ctranslate2_spec(trained.model, trained.vocabulary.symbols, trained.marks)
    with atomic_path(folder, checksum=False) as temporary:
        temporary.mkdir()
        spec.save(str(temporary))
        pipeline, symbols = trained.pipeline, trained.vocabulary.symbols
        write_json(temporary / "pipeline.json", pipeline.to_dict(), checksum=False)
        before, after = ([symbols[mark] for mark in marks] for marks in trained.marks.around("src"))
        form = OF_DOCUMENT if is_document_model(trained.model.settings) else OF_SENTENCE
        languages = {"src": pipeline.src_lang, "tgt": pipeline.tgt_lang}
        marks = symbols[trained.marks.tgt_before[0]], symbols[EOS]
        translation = form.format(**languages, before=before, after=after, marks=marks)
        (temporary / "README.md").write_text(README.format(**languages, translation=translation), encoding="utf-8")


def ctranslate2_spec(model: Transformer, symbols: Sequence[str], marks: Marks) -> Any:
    """A model as CTranslate2 describes it (`TransformerSpec`), with its weights.

    Raises UserError when CTranslate2 is not installed, or cannot compute the model.
    """
    settings, form = model.settings, model.settings.form
    of_documents = is_document_model(settings)
    try:
        from ctranslate2 import specs  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UserError("CTranslate2 is not installed: pip install ctranslate2") from None
    start, *forced = marks.tgt_before
    has_own_marks = marks.src_before not in ((), (BOS,)) or marks.src_after != (EOS,)
    if forced or (has_own_marks and not of_documents):
        raise UserError("this model has marks that CTranslate2 does not add by itself: export is for other models")
    spec: Any = specs.TransformerSpec.from_config(
        (settings.encoder_layers, settings.decoder_layers),
        settings.heads,
        pre_norm=form.norm == "pre",
        activation=specs.Activation[form.activation.upper()],
        layernorm_embedding=form.embedding_norm,
    )
    _fill(spec, model)
    for register in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        register(list(symbols))
    spec.config.bos_token, spec.config.unk_token = "<s>", "<unk>"
    # A document has marks around each sentence, which whoever calls the model adds.
    spec.config.eos_token = symbols[EOD] if of_documents else symbols[EOS]
    spec.config.add_source_bos = bool(marks.src_before) and not of_documents
    spec.config.add_source_eos = not of_documents
    spec.config.decoder_start_token = symbols[start]
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    return spec


def _fill(spec: Any, model: Transformer) -> None:
    """Copy all weights."""
    form = model.settings.form
    table = model.embedding.weight.detach().numpy()
    sides = ((spec.encoder, spec.encoder.embeddings[0], model.src_inputs, model.encoder_norm),)
    sides += ((spec.decoder, spec.decoder.embeddings, model.tgt_inputs, model.decoder_norm),)
    for theirs, embeddings, inputs, norm in sides:
        embeddings.weight = table
        vectors = inputs.table(MAX_POSITIONS, torch.device("cpu"))[form.position_offset :]
        theirs.position_encodings.encodings = vectors.detach().numpy()
        if form.embedding_norm:
            _fill_norm(theirs.layernorm_embedding, inputs.norm)
        if form.final_norm:
            _fill_norm(theirs.layer_norm, norm)
    spec.decoder.start_from_zero_embedding = form.zero_start
    spec.decoder.projection.weight = table
    if model.output_bias is not None:
        spec.decoder.projection.bias = model.output_bias.detach().numpy()
    for theirs, ours in zip(spec.encoder.layer, model.encoder_layers, strict=True):
        _fill_attention(theirs.self_attention, ours.self_attention, splits=[3, 1])
        _fill_layer(theirs, ours)
    for theirs, ours in zip(spec.decoder.layer, model.decoder_layers, strict=True):
        _fill_attention(theirs.self_attention, ours.self_attention, splits=[3, 1])
        _fill_attention(theirs.attention, ours.cross_attention, splits=[1, 2, 1])
        _fill_norm(theirs.attention.layer_norm, ours.cross_sublayer.norm)
        _fill_layer(theirs, ours)


def _fill_layer(theirs: Any, ours: Any) -> None:
    _fill_norm(theirs.self_attention.layer_norm, ours.self_sublayer.norm)
    _fill_norm(theirs.ffn.layer_norm, ours.feed_forward_sublayer.norm)
    inner = ours.feed_forward
    for linear, source in ((theirs.ffn.linear_0, inner.inner), (theirs.ffn.linear_1, inner.outer)):
        linear.weight, linear.bias = source.weight.detach().numpy(), source.bias.detach().numpy()


def _fill_norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = ours.weight.detach().numpy(), ours.bias.detach().numpy()


def _fill_attention(theirs: Any, ours: Any, splits: list[int]) -> None:
    """The linear maps of an attention; a map can join queries, keys and values."""
    assert isinstance(ours, MultiHeadAttention), "plain Transformers have no fusions"
    weight = torch.cat((ours.in_weight, ours.out.weight)).detach()
    bias = torch.cat((ours.in_bias, ours.out.bias)).detach()
    rows = [split * ours.out.out_features for split in splits]
    for linear, part, shift in zip(theirs.linear, weight.split(rows), bias.split(rows), strict=True):
        linear.weight, linear.bias = part.numpy().copy(), shift.numpy().copy()
