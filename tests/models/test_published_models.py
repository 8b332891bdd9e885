"""Published models, compared with plain formulas. The tests do not need transformers."""

import dataclasses
import json

import pytest
import torch
from core_fixtures import assert_close, decoder_states, make_batch
from published_models import (
    COMMON,
    CONFIGS,
    LANGUAGES,
    LINES,
    Reference,
    make_published,
    write,
    write_model,
    write_text,
    write_weights,
)

from docmt.cli.main import main
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Source, Translator
from docmt.errors import UserError
from docmt.models.model_file import load_model, save_model
from docmt.models.published.families import read_settings
from docmt.models.published.importing import import_model
from docmt.text.published_text import PublishedText
from docmt.text.vocabulary import EOS, N_SPECIALS

pytest.importorskip("sentencepiece")

SENTENCES = LINES[:6] + LINES[-6:]


@dataclasses.dataclass
class Published:
    """A folder, its plain computation, and docmt's import."""

    family: str
    folder: object
    symbols: list
    reference: Reference
    trained: object

    def their_ids(self, ours):
        """Rows of the published model for docmt's ids. Tags are the languages."""
        names = dict(zip(("<en>", "<de>"), self.codes, strict=True))
        symbols = [names.get(symbol, symbol) for symbol in self.trained.vocabulary.decode(ours)]
        if self.family == "marian":
            symbols = ["<pad>" if symbol == "<s>" else symbol for symbol in symbols]
        return [self.symbols.index(symbol) for symbol in symbols]

    @property
    def codes(self):
        return ("__en__", "__de__") if self.family == "m2m_100" else LANGUAGES[:2]


@pytest.fixture(scope="module", params=CONFIGS)
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    symbols, weights = write_model(folder, request.param)
    trained = import_model(folder, languages=("en", "de"))
    return Published(request.param, folder, symbols, Reference(request.param, weights), trained)


def pack_pairs(trained, pairs):
    """Token ids for both sides per pair, and the pairs as a batch of one-sentence documents."""
    sides = [[trained.encode(pair[number], side) for pair in pairs] for number, side in enumerate(("src", "tgt"))]
    documents = [([src], [tgt]) for src, tgt in zip(*sides, strict=True)]
    return sides, make_batch(trained.model.settings, documents)


def test_logits_equal_the_published_formula(published):
    trained = published.trained
    pairs = list(zip(SENTENCES, reversed(SENTENCES), strict=True))
    (sources, targets), batch = pack_pairs(trained, pairs)
    with torch.no_grad():
        logits = trained.model.logits(decoder_states(trained.model, batch))
    first = N_SPECIALS if published.family == "marian" else trained.vocabulary.n_specials
    words = list(range(first, len(trained.vocabulary)))
    columns = [EOS, 3, *words]
    expected = [
        published.reference.logits(published.their_ids(src), published.their_ids(tgt[:-1]))
        for src, tgt in zip(sources, targets, strict=True)
    ]
    assert_close(logits[:, columns], torch.cat(expected)[:, published.their_ids(columns)])


def test_marks_are_those_of_the_model(published):
    trained = published.trained
    tokens = published.trained.vocabulary.decode(trained.encode("the dog", "src"))
    words = trained.pipeline.prepare("the dog", lang="en")
    expected = {"marian": [*words, "</s>"], "mbart": [*words, "</s>", "<en>"]}
    assert tokens == expected.get(published.family, ["<en>", *words, "</s>"])
    start = {"marian": ["<s>"], "mbart": ["<de>"]}.get(published.family, ["</s>", "<de>"])
    assert trained.vocabulary.decode(trained.marks.tgt_before) == start


def test_the_command_writes_a_model_that_translates(published, tmp_path):
    out = tmp_path / "model.pt"
    languages = [] if published.family == "marian" else ["--src-lang", "en", "--tgt-lang", "de"]
    assert main(["models", "import", str(published.folder), "--out", str(out), *languages]) == 0
    (tmp_path / "text").write_text("the dog sees\n\na house\n", encoding="utf-8")
    assert main(["translate", "--model", str(out), f"{tmp_path}/text", "--out", f"{tmp_path}/out"]) == 0
    assert len((tmp_path / "out").read_text(encoding="utf-8").split("\n")) == 4
    again = load_model(out)
    for name, value in published.trained.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value), name
    assert again.marks == published.trained.marks


def test_pruning_keeps_what_the_text_needs(published):
    text = ["the dog sees", "das Tier"]
    small = import_model(published.folder, languages=("en", "de"), text=text)
    assert len(small.vocabulary) < len(published.trained.vocabulary)
    for line in text:
        pieces = small.vocabulary.decode(small.encode(line, "src"))
        assert pieces == published.trained.vocabulary.decode(published.trained.encode(line, "src"))
    batches = [pack_pairs(trained, [text])[1] for trained in (small, published.trained)]
    models = [small.model, published.trained.model]
    assert torch.equal(*map(decoder_states, models, batches))


def test_safetensors_are_read_like_pickled_tensors(published, tmp_path):
    save_file = pytest.importorskip("safetensors.torch").save_file
    write_text(tmp_path, published.family)
    save_file(published.reference.weights, tmp_path / "model.safetensors")
    trained = import_model(tmp_path, languages=("en", "de"))
    for name, value in published.trained.model.state_dict().items():
        assert torch.equal(trained.model.state_dict()[name], value), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
        ({"decoder_start_token_id": 0}, "decoder_start_token_id is 0, but docmt supports only 33"),
        ({"model_type": "m2m_100", "decoder_start_token_id": 0, "pad_token_id": 0}, "pad_token_id is 0"),
        ({"model_type": "m2m_100", "pad_token_id": 1, "eos_token_id": 2}, "start_token_id is 33, but .* only 2"),
        ({"model_type": "bert"}, "model_type 'bert' is not supported; known: marian"),
        ({"scale_embedding": False}, "scale_embedding is False"),
        ({"activation_function": "tanh"}, "activation_function 'tanh'"),
        ({"decoder_ffn_dim": 8}, "ffn_dim differ between encoder and decoder"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings is False"),
    ],
)
def test_impossible_models_are_one_line(change, message, tmp_path):
    _, config = write_text(tmp_path, "marian")
    write(tmp_path / "config.json", config | change)
    with pytest.raises(UserError, match=message) as error:
        import_model(tmp_path, languages=("en", "de"))
    assert "\n" not in str(error.value)


def test_mbart50_is_known_by_its_tokenizer(tmp_path):
    _, config = write_text(tmp_path, "mbart50")
    write(tmp_path / "config.json", config | {"decoder_start_token_id": config["vocab_size"] - 2})
    assert read_settings(tmp_path).marks.src_before == []
    write(tmp_path / "tokenizer_config.json", {"tokenizer_class": "MBart50TokenizerFast"})
    assert read_settings(tmp_path).marks.src_before == ["{src}"]


def test_missing_embedding_scale_follows_transformers(tmp_path):
    for family in ("mbart", "marian", "m2m_100"):
        config = write_text(tmp_path, family)[1]
        del config["scale_embedding"]
        write(tmp_path / "config.json", config)
        if family == "m2m_100":
            assert read_settings(tmp_path).form.position_offset == 2
        else:
            with pytest.raises(UserError, match="scale_embedding is False"):
                read_settings(tmp_path)


def test_missing_or_damaged_files_are_named(tmp_path):
    symbols, _ = write_text(tmp_path, "marian")
    with pytest.raises(UserError, match=r"neither model.safetensors nor pytorch_model.bin"):
        import_model(tmp_path, languages=("en", "de"))
    (tmp_path / "pytorch_model.bin").write_bytes(b"no tensors")
    with pytest.raises(UserError, match=r"pytorch_model.bin: cannot be read"):
        import_model(tmp_path, languages=("en", "de"))
    weights = write_weights(tmp_path, "marian", len(symbols))
    del weights["model.decoder.layers.1.fc1.bias"]
    torch.save(weights, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"no model.decoder.layers.1.fc1.bias"):
        import_model(tmp_path, languages=("en", "de"))
    weights = write_weights(tmp_path, "marian", len(symbols))
    weights["model.decoder.layers.1.fc1.bias"] = torch.zeros(5)
    torch.save(weights, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"decoder.1.feed_forward.inner.bias has a different .* get its files again"):
        import_model(tmp_path, languages=("en", "de"))
    write(tmp_path / "tokenizer_config.json", {"separate_vocabs": True})
    with pytest.raises(UserError, match="has two vocabularies"):
        import_model(tmp_path, languages=("en", "de"))
    (tmp_path / "config.json").unlink()
    with pytest.raises(UserError, match=r"config.json"):
        import_model(tmp_path, languages=("en", "de"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("vocab.json", content) for content in ([], ["a"], {}, {"a": "b"}, 3, {"</s>": 0}, {"<unk>": 0})),
        *(("vocab.json", {"</s>": 0, "<unk>": 1, "a": row}) for row in (-1, 1.5, True)),
        ("vocab.json", {"</s>": 0, "<unk>": 1, "\ud800": 2}),
        *(("tokenizer.json", {"added_tokens": [{"content": "de_DE", "id": row}]}) for row in (None, "7", -1)),
        *(("tokenizer_config.json", content) for content in ([], 3, {"added_tokens_decoder": {"a": {}}})),
        *(("added_tokens.json", content) for content in (["a"], 3)),
        *(("config.json", content) for content in ([], 3, {"model_type": []}, CONFIGS["marian"] | {"dropout": []})),
        ("config.json", COMMON | CONFIGS["mbart"] | {"model_type": "mbart", "max_position_embeddings": None}),
    ],
)
def test_malformed_files_are_refused_in_one_line(name, content, tmp_path):
    write_model(tmp_path, "marian")
    write(tmp_path / name, content)
    with pytest.raises(UserError, match=name.split(".")[0] if name == "config.json" else "is malformed") as error:
        import_model(tmp_path, languages=("en", "de"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("final_logits_bias", lambda tensor: tensor / 0),
        ("final_logits_bias", lambda tensor: tensor.int()),
        ("final_logits_bias", lambda tensor: tensor[:, :9]),
        ("model.shared.weight", lambda tensor: tensor[:9]),
        ("model.shared.weight", lambda tensor: torch.zeros(1).half().expand(10**13)),
        ("model.shared.weight", lambda tensor: "text"),
        ("model.encoder.layers.0.fc1.bias", lambda tensor: tensor.double() * 1e300),
        ("model.encoder.layers.0.fc1.bias", lambda tensor: torch.tensor(1.0)),
        ("model.encoder.layers.0.self_attn.q_proj.weight", lambda tensor: tensor[:, :9]),
    ],
)
def test_wrong_weights_are_refused_in_one_line(name, change, tmp_path):
    _, weights = write_model(tmp_path, "marian")
    torch.save(weights | {"epoch": 3}, tmp_path / "pytorch_model.bin")
    import_model(tmp_path, languages=("en", "de"))  # other entries are nobody's business
    torch.save(weights | {name: change(weights[name])}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"published weights (contains NaN|do not fit)") as error:
        import_model(tmp_path, languages=("en", "de"))
    assert "\n" not in str(error.value)


def test_a_changed_byte_in_the_weights_is_noticed(tmp_path):
    write_model(tmp_path, "marian")
    content = bytearray((tmp_path / "pytorch_model.bin").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(UserError, match=r"pytorch_model.bin: cannot be read \(the checksum of .* differs"):
        import_model(tmp_path, languages=("en", "de"))


@pytest.mark.parametrize(
    ("width", "words"),
    [(10**10, "the model size in its settings is impossible"), (10**30, "width: must be at most 100,000,000,000")],
)
def test_a_width_beyond_all_memory_is_refused(width, words, tmp_path):
    write_model(tmp_path, "marian")
    write(tmp_path / "config.json", json.loads((tmp_path / "config.json").read_text()) | {"d_model": width})
    with pytest.raises(UserError, match=words):
        import_model(tmp_path, languages=("en", "de"))


@pytest.mark.parametrize(("family", "name"), [("marian", "target.spm"), ("m2m_100", "sentencepiece.bpe.model")])
def test_damaged_sentencepiece_models_are_named(family, name, tmp_path):
    write_model(tmp_path, family)
    for content in (b"", (tmp_path / name).read_bytes()[:-9]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name}: the SentencePiece model is damaged"):
            import_model(tmp_path, languages=("en", "de"))


def test_missing_marks_are_refused_early(tmp_path):
    write_model(tmp_path, "marian")
    with pytest.raises(UserError, match="no symbol '>>deu<<'"):
        import_model(tmp_path, languages=("en", "de"), codes=("eng", ">>deu<<"))
    write_model(tmp_path / "m2m", "m2m_100")
    (tmp_path / "m2m" / "special_tokens_map.json").unlink()
    with pytest.raises(UserError, match="m2m: language 'en'"):
        import_model(tmp_path / "m2m", languages=("en", "de"))


def test_first_piece_can_resemble_a_tag(tmp_path):
    symbols, _ = write_model(tmp_path, "marian")
    symbols[2] = "<sep>"
    write(tmp_path / "vocab.json", {symbol: number for number, symbol in enumerate(symbols)})
    trained = import_model(tmp_path, languages=("en", "de"))
    save_model(tmp_path / "model.pt", trained)
    again = load_model(tmp_path / "model.pt").vocabulary
    assert again.encode(["<sep>"]) == trained.vocabulary.encode(["<sep>"])
    assert again.extras == ()


def test_marian_models_can_have_further_symbols(tmp_path):
    """A separator of sentences, after fine-tuning."""
    symbols, _ = write_text(tmp_path, "marian")
    write(tmp_path / "added_tokens.json", {"<sep>": len(symbols)})
    write_weights(tmp_path, "marian", len(symbols) + 1)
    trained = import_model(tmp_path, languages=("en", "de"))
    assert trained.vocabulary.extras == ()
    assert Translator(trained).translate_documents([["the dog"]])


def test_legacy_nllb_ends_sources_with_the_language(tmp_path):
    write_model(tmp_path, "m2m_100")
    marks = read_settings(tmp_path).marks
    assert (marks.src_before, marks.src_after) == (["{src}"], ["</s>"])
    write(tmp_path / "tokenizer_config.json", {"legacy_behaviour": True})
    marks = read_settings(tmp_path).marks
    assert (marks.src_before, marks.src_after, marks.tgt_before) == ([], ["</s>", "{src}"], ["</s>", "{tgt}"])


@pytest.mark.parametrize("name", ["lm_head.weight", "model.decoder.embed_tokens.weight"])
def test_tied_embeddings_can_have_any_name(name, tmp_path):
    _, weights = write_model(tmp_path, "marian")
    expected = import_model(tmp_path, languages=("en", "de")).model.embedding.weight
    weights[name] = weights.pop("model.shared.weight")
    torch.save(weights, tmp_path / "pytorch_model.bin")
    assert import_model(tmp_path, languages=("en", "de")).model.embedding.weight.equal(expected)


def test_weights_of_two_models_are_refused(tmp_path):
    write_model(tmp_path, "marian")
    (tmp_path / "pytorch_model_old.bin").write_bytes((tmp_path / "pytorch_model.bin").read_bytes())
    with pytest.raises(UserError, match=r"pytorch_model_old\.bin: .* is also in another weight file"):
        import_model(tmp_path, languages=("en", "de"))


def test_learned_positions_have_an_end(tmp_path):
    translator = Translator(make_published(tmp_path, "mbart"), DecodingSettings(beam_size=1, max_length_offset=60))
    assert translator.translate_documents([["the dog"]])  # more words than positions: no crash
    with pytest.raises(UserError, match="40 learned positions"):
        translator.translate_documents([["the dog sees the house " * 20]])


def test_a_source_can_begin_with_a_target_language(tmp_path, caplog):
    symbols, _ = write_text(tmp_path, "marian")
    ids = json.loads((tmp_path / "vocab.json").read_text()) | {">>deu<<": len(symbols)}
    write(tmp_path / "vocab.json", ids)
    write_weights(tmp_path, "marian", len(symbols) + 1)
    trained = import_model(tmp_path, languages=("en", "de"), codes=("eng", ">>deu<<"))
    assert trained.vocabulary.decode(trained.encode("the dog", "src"))[0] == ">>deu<<"
    import_model(tmp_path, languages=("en", "de"))
    assert "several target languages" not in caplog.text
    write(tmp_path / "vocab.json", ids | {">>fra<<": len(symbols) + 1})
    write_weights(tmp_path, "marian", len(symbols) + 2)
    import_model(tmp_path, languages=("en", "de"))
    assert "symbols for several target languages (>>deu<<, >>fra<<, …)" in caplog.text


@pytest.mark.parametrize("family", ["mbart", "m2m_100"])
def test_languages_are_found_in_each_kind_of_file(family, tmp_path):
    symbols, _ = write_text(tmp_path, family)
    (tmp_path / "special_tokens_map.json").unlink()
    added = [{"id": number, "content": symbol} for number, symbol in enumerate(symbols) if symbol[:1] in "<_def"]
    added = [token for token in added if token["id"] < 4 or token["id"] > len(symbols) - 5]
    for name, content in (
        ("tokenizer.json", {"added_tokens": added}),
        ("tokenizer_config.json", {"added_tokens_decoder": {token["id"]: token for token in added}}),
        ("added_tokens.json", {token["content"]: token["id"] for token in added}),
    ):
        write(tmp_path / name, content)
        published = PublishedText.read(tmp_path)
        (tmp_path / name).unlink()
        symbol = published.language_symbol("de")
        assert symbol == published.language_symbol(symbol) == symbols[published.ids[symbol]]
        assert [symbols[published.ids[piece]] for piece in published.pieces()] == published.pieces()
        assert ("<mask>" in published.ids) == ("<mask>" in symbols)
        with pytest.raises(UserError, match="language 'ja' is not one of"):
            published.language_symbol("ja")


def test_pieces_with_white_space_are_left_out(tmp_path):
    symbols, _ = write_text(tmp_path, "marian")
    write(tmp_path / "vocab.json", {symbol: n for n, symbol in enumerate([*symbols, "a\u3000b"])})
    assert "a\u3000b" not in PublishedText.read(tmp_path).pieces()


@pytest.mark.parametrize("family", ["mbart", "m2m_100"])
def test_multilingual_model_translates_any_pair(family, tmp_path, capsys):
    save_model(tmp_path / "model.pt", make_published(tmp_path / "published", family))
    trained = load_model(tmp_path / "model.pt")
    assert set(trained.languages) == {"en", "de", "fr"}
    other, again = trained.for_languages("de", "fr"), import_model(tmp_path / "published", languages=("de", "fr"))
    settings = DecodingSettings(beam_size=1)
    expected = Translator(again, settings).translate_documents([SENTENCES])
    assert Translator(other, settings).translate_documents([SENTENCES]) == expected
    assert Translator(trained, settings).translate_documents([SENTENCES]) != expected
    (tmp_path / "a.lines").write_text("\n".join(SENTENCES), encoding="utf-8")
    call = ["translate", "--model", f"{tmp_path}/model.pt", "--beam-size", "1", "--out", f"{tmp_path}/out"]
    call += [f"{tmp_path}/a.lines", "--source-lang", "de", "--target-lang"]
    assert main([*call, "fr"]) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == expected[0]
    assert main([*call, "ja"]) == 2
    assert "model.pt: language 'ja': this model supports de en fr" in capsys.readouterr().err
    assert main([*call, "de"]) == 2
    assert "source and target language are both 'de'" in capsys.readouterr().err


def test_a_model_of_one_pair_refuses_others(tmp_path, capsys):
    save_model(tmp_path / "model.pt", make_published(tmp_path / "published", "marian"))
    (tmp_path / "a.txt").write_text("the dog", encoding="utf-8")
    call = ["translate", "--model", f"{tmp_path}/model.pt", f"{tmp_path}/a.txt"]
    assert main([*call, "--source-lang", "en", "--target-lang", "de"]) == 0
    assert main([*call, "--target-lang", "fr"]) == 2
    assert "model.pt: language pair en-fr: this model translates en-de only" in capsys.readouterr().err


def test_codes_name_hidden_languages(tmp_path):
    trained = make_published(tmp_path, "mbart", languages=("eng", "deu"), codes=("en_XX", "de_DE"))
    assert set(trained.languages) == {"eng", "deu", "fr"}
    expected = import_model(tmp_path, languages=("en", "de"))
    settings = DecodingSettings(beam_size=1)
    texts, wanted = (Translator(model, settings).translate_documents([SENTENCES]) for model in (trained, expected))
    assert texts == wanted


def test_ambiguous_languages_need_symbols(tmp_path):
    symbols, _ = write_text(tmp_path, "m2m_100")
    names = ["__en__", "__de__", "zho_Hans", "zho_Hant", "__br__"]
    write(tmp_path / "special_tokens_map.json", {"additional_special_tokens": names})
    symbols = [*symbols[:-3], "<br>"]
    write(tmp_path / "vocab.json", {symbol: number for number, symbol in enumerate(symbols)})
    write_weights(tmp_path, "m2m_100", len(symbols) + len(names))
    assert set(import_model(tmp_path, languages=("en", "de")).languages) == set()
    codes = ("__en__", "zho_Hans")
    assert set(import_model(tmp_path, languages=("en", "zho"), codes=codes).languages) == {"en", "de", "zho"}


def test_greedy_output_equals_the_published_formula(published):
    trained = published.trained
    limits = {"max_length_ratio": 1e-9, "max_length_offset": 12}
    translator = Translator(trained, DecodingSettings(beam_size=1, **limits))
    sources = [Source([trained.encode(line, "src")]) for line in SENTENCES]
    translations = {number: hypothesis.sentences[0] for number, hypothesis in translator.translate_sources(sources)}
    unused = {"<s>", "<pad>", "<unk>", "<mask>", *LANGUAGES, "__en__", "__de__", "__fr__"}
    banned = [row for row, symbol in enumerate(published.symbols) if symbol in unused]
    start = published.their_ids(trained.marks.tgt_before)
    (end,) = published.their_ids([EOS])
    for number, source in enumerate(sources):
        expected = published.reference.greedy(published.their_ids(source.sentences[0]), start, end, banned, 12)
        assert published.their_ids(translations[number]) == expected
