"""Random models of real classes from transformers have the same logits and greedy output after conversion.

A model is imported directly, and by the command in a study, with the study's vocabulary and text pipeline.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from core_fixtures import assert_close
from published_models import CONFIGS, LINES, write_text

from docmt.cli.main import main
from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import TargetScorer, score_suite
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Source, Translator
from docmt.models.attention.layout import AttentionLayout
from docmt.models.model_file import load_model
from docmt.models.published.families import NEVER
from docmt.models.published.importing import import_model
from docmt.models.systems.transformer import sinusoids
from docmt.text.vocabulary import EOS

pytest.importorskip("sentencepiece")
pytest.importorskip("safetensors")
transformers = pytest.importorskip("transformers")

CLASSES = {
    "marian": "MarianMTModel",
    "mbart": "MBartForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
}
SENTENCES = LINES[:8]


@pytest.fixture(scope="module", params=[(family, of_study) for family in CONFIGS for of_study in (False, True)])
def both(request, tmp_path_factory):
    """The family, the model from transformers, the symbols of its rows, and docmt's model."""
    family, of_study = request.param
    folder = tmp_path_factory.mktemp(family)
    symbols, config = write_text(folder, family)
    kind = getattr(transformers, CLASSES[config["model_type"]])
    torch.manual_seed(0)
    model = kind(kind.config_class(**{key: value for key, value in config.items() if key != "model_type"})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + ("norm.weight" in name))
        model.model.shared.weight[config["pad_token_id"]] = 0
        if family == "marian":
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    if family == "marian":  # transformers has other rates than Marian, see docs/pretrained.md
        for side in (model.model.encoder, model.model.decoder):
            table = sinusoids(config["max_position_embeddings"], config["d_model"])
            side.embed_positions.weight.data = table[: config["max_position_embeddings"]].clone()
    trained = import_model(folder, languages=("en", "de"))
    if of_study:
        files = {"vocabulary": folder / "vocabulary.txt", "pipeline": folder / "pipeline.json"}
        trained.vocabulary.save(files["vocabulary"])
        trained.pipeline.save(files["pipeline"])
        words = [word for name, file in files.items() for word in (f"--{name}", str(file))]
        out = folder / "model.pt"
        assert main(["models", "import-for-study", str(folder), *words, "--fingerprint", "f", "--out", str(out)]) == 0
        trained = load_model(out, fingerprint="f")
    return family, model, symbols, trained


def their_ids(family, symbols, trained, ids):
    codes = ("__en__", "__de__", "__fr__") if family == "m2m_100" else ("en_XX", "de_DE", "fr_XX")
    names = dict(zip(("<en>", "<de>", "<fr>"), codes, strict=True))
    if family == "marian":
        names["<s>"] = "<pad>"
    return [symbols.index(names.get(symbol, symbol)) for symbol in trained.vocabulary.decode(ids)]


def test_logits_are_equal(both):
    family, theirs, symbols, trained = both
    words = [EOS, 3, *range(trained.vocabulary.n_specials, len(trained.vocabulary))]
    columns = their_ids(family, symbols, trained, words)
    for src_line, tgt_line in zip(SENTENCES, reversed(SENTENCES), strict=True):
        src, tgt = trained.encode(src_line, "src"), trained.encode(tgt_line, "tgt")[:-1]
        inputs = [torch.tensor([their_ids(family, symbols, trained, ids)]) for ids in (src, tgt)]
        with torch.no_grad():
            expected = theirs(input_ids=inputs[0], decoder_input_ids=inputs[1]).logits[0][:, columns]
            scores = trained.model.logits(our_states(trained, src, tgt))[:, words]
        assert_close(scores, expected)


def our_states(trained, src, tgt):
    layout = AttentionLayout(np.array([len(src)]), np.array([len(tgt)]), np.array([1]), settings=trained.model.settings)
    return trained.model(torch.from_numpy(src).long(), torch.from_numpy(tgt).long(), trained.model.place(layout))


MAX_WORDS = 12
USED = {"<s>", "<pad>", "<unk>", "<mask>", "en_XX", "de_DE", "fr_XX", "__en__", "__de__", "__fr__"}
"""Symbols that docmt never generates."""


def their_translations(both, lines, *, max_words=MAX_WORDS):
    """Greedy translations by transformers, in their ids."""
    family, theirs, symbols, trained = both
    start = their_ids(family, symbols, trained, trained.marks.tgt_before)
    (end,) = their_ids(family, symbols, trained, [EOS])
    suppressed = [number for number, symbol in enumerate(symbols) if symbol in USED]
    for line in lines:
        output = theirs.generate(
            torch.tensor([their_ids(family, symbols, trained, trained.encode(line, "src"))]),
            decoder_input_ids=torch.tensor([start]),
            decoder_start_token_id=start[0],
            num_beams=1,
            do_sample=False,
            min_new_tokens=1,
            max_new_tokens=max_words + 1,
            forced_bos_token_id=None,
            forced_eos_token_id=None,
            bad_words_ids=None,
            suppress_tokens=suppressed,
            eos_token_id=end,
        )[0].tolist()
        words = output[len(start) :]
        yield words[: words.index(end)] if end in words else words[:max_words]


def test_greedy_output_is_equal(both):
    family, _, symbols, trained = both
    settings = DecodingSettings(beam_size=1, max_length_ratio=1e-9, max_length_offset=MAX_WORDS)
    sources = [Source([trained.encode(line, "src")]) for line in SENTENCES]
    hypotheses = dict(Translator(trained, settings).translate_sources(sources))
    for number, words in enumerate(their_translations(both, SENTENCES)):
        assert their_ids(family, symbols, trained, hypotheses[number].sentences[0]) == words


def their_log_probability(both, src, tgt):
    """Log probability of target ids, by a softmax over the published symbols that docmt's model has."""
    family, theirs, symbols, trained = both
    published = (trained.model.output_bias > NEVER).nonzero().flatten().tolist()
    columns = their_ids(family, symbols, trained, published)
    ids = [torch.tensor([their_ids(family, symbols, trained, side)]) for side in (src, tgt)]
    with torch.no_grad():
        logits = theirs(input_ids=ids[0], decoder_input_ids=ids[1][:, :-1]).logits[0]
    labels = ids[1][0, 1:, None]
    return (logits.gather(1, labels)[:, 0] - logits[:, columns].logsumexp(1)).sum()


WINDOWS = [SENTENCES[:3], SENTENCES[3:6]]


def test_joined_sentences_are_translated_as_one(both):
    family, _, symbols, trained = both
    max_words = 6
    settings = DecodingSettings(beam_size=1, max_length_ratio=1e-9, max_length_offset=max_words, context="joined")
    translator = Translator(trained, settings)
    sources = [Source([trained.encode(line, "src") for line in lines]) for lines in WINDOWS]
    joined = [" ".join(lines) for lines in WINDOWS]
    expected = list(their_translations(both, joined, max_words=max_words))
    for number, hypothesis, texts in translator.translate_texts(sources):
        (words,) = hypothesis.sentences
        assert their_ids(family, symbols, trained, words) == expected[number]
        target = trained.marks.wrap(words, "tgt")
        log_probability = their_log_probability(both, trained.encode(joined[number], "src"), target)
        assert_close(torch.tensor(hypothesis.log_probability), log_probability, 1e-4)
        assert len(texts) == 3
        assert " ".join(filter(None, texts)) == translator.restore(hypothesis)[0]


@pytest.mark.parametrize("is_prefix", [False, True])
def test_candidates_are_scored_in_windows(both, is_prefix):
    trained = replace(both[3], instance_settings={"max_sentences": 3})
    src, first, second = SENTENCES[:4], SENTENCES[4:8], [*SENTENCES[4:7], SENTENCES[0]]
    item = ContrastiveItem("a", "test", tuple(src), (tuple(first), tuple(second)), 0, is_prefix=is_prefix)
    (row,) = score_suite([item], TargetScorer(trained, DecodingSettings(context="joined")))
    for candidate, score in zip((first, second), row["scores"], strict=True):
        expected = torch.tensor(0.0)
        for part in (slice(0, 1), slice(1, 4)):  # counted from the tested sentence
            ids = trained.encode(" ".join(src[part]), "src"), trained.encode(" ".join(candidate[part]), "tgt")
            expected += their_log_probability(both, *ids)
        if is_prefix:  # without the last `</s>`
            words = trained.encode(" ".join(candidate[1:]), "tgt")[:-1]
            expected -= their_log_probability(both, ids[0], ids[1]) - their_log_probability(both, ids[0], words)
        assert_close(torch.tensor(score), expected, 1e-4)
