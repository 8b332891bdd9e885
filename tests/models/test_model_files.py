"""Model files, and models that start from another model."""

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from core_fixtures import make_model, model_settings

from docmt.checksums import checksum_path
from docmt.errors import UserError
from docmt.models.initialization import copy_weights
from docmt.models.model_file import TrainedModel, load_content, load_model, save_model, weights_digest
from docmt.models.systems.context_transformer import build_transformer


@pytest.fixture
def trained(study_files):
    model = make_model("g_transformer", n_symbols=len(study_files.vocabulary))
    return TrainedModel(model, study_files.vocabulary, study_files.pipeline, {"max_tokens": 512}, {"seed": 3})


def test_a_model_comes_back_whole(trained, tmp_path):
    path = tmp_path / "folder" / "model.pt"
    save_model(path, trained)
    loaded = load_model(path)
    weights, expected = loaded.model.state_dict(), trained.model.state_dict()
    assert list(weights) == list(expected)
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert not loaded.model.training
    assert loaded.model.settings == trained.model.settings
    assert loaded.vocabulary.symbols == trained.vocabulary.symbols
    assert loaded.pipeline.to_dict() == trained.pipeline.to_dict()
    assert (loaded.instance_settings, loaded.provenance) == ({"max_tokens": 512}, {"seed": 3})
    assert sorted(file.name for file in path.parent.iterdir()) == [".checksums", "model.pt"]


def test_equal_models_give_equal_bytes(trained, tmp_path):
    """Even for repeated or copied objects, and for tensors that are part of larger memory."""
    word = "".join(["docu", "ments"])
    shared, copied = [word, word], [word, "".join(["docu", "ments"])]
    files = []
    for number, words in enumerate((shared, copied)):
        path = tmp_path / str(number) / "model.pt"
        provenance = {"tasks": words, "nested": {"pair": (1, 0.5), "list": [1, None]}}
        save_model(path, replace(trained, provenance=provenance, model=copy.deepcopy(trained.model)))
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert load_model(path).provenance == {"tasks": copied, "nested": {"pair": [1, 0.5], "list": [1, None]}}


def test_tied_weights_are_stored_once(trained, tmp_path):
    save_model(tmp_path / "model.pt", trained)
    weights = load_content(tmp_path / "model.pt")["weights"]
    size = sum(p.numel() * 4 for p in trained.model.parameters())
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in weights.values()}
    assert sum(stored.values()) == size


@pytest.mark.parametrize(
    ("change", "is_equal"),
    [
        (lambda tensor: tensor.clone().t().contiguous().t(), True),
        (lambda tensor: torch.stack([tensor, tensor])[1], True),
        (lambda tensor: tensor.flip(0), False),
        (lambda tensor: tensor.reshape(2, 6), False),
        (lambda tensor: tensor.half(), False),
        (lambda tensor: tensor.view(torch.int32), False),
    ],
)
def test_weights_digest_depends_on_contents(change, is_equal):
    tensor = torch.arange(12.0).reshape(3, 4)
    before = {"a": tensor, "b": torch.zeros(0), "c": torch.tensor(1.0), "d": torch.ones(2, dtype=torch.bfloat16)}
    after = dict(reversed((before | {"a": change(tensor)}).items()))
    assert (weights_digest(before) == weights_digest(after)) is is_equal
    assert weights_digest(before) != weights_digest({f"{name}.": value for name, value in before.items()})


class Evil:
    def __reduce__(self):
        return print, ("code that ran",)


def change(path, edit):
    """Edit the content of a model file."""
    content = torch.load(path, weights_only=True)
    edit(content)
    torch.save(content, path)
    checksum_path(path).unlink()


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 3] ^= 1
    path.write_bytes(bytes(data))


@pytest.fixture
def path(trained, tmp_path):
    """A model file."""
    save_model(tmp_path / "model.pt", trained)
    return tmp_path / "model.pt"


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a flipped bit": lambda path: flip_a_bit(path),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not a model"),
    "pickle that runs code": lambda path: path.write_bytes(pickle.dumps(Evil(), protocol=2)),
    "another torch file": lambda path: torch.save({"weights": torch.zeros(3)}, path),
    "a bare tensor": lambda path: torch.save(torch.zeros(3), path),
    "another format": lambda path: change(path, lambda content: content.update(format=99)),
    "a missing key": lambda path: change(path, lambda content: content.pop("pipeline")),
    "settings of another model": lambda path: change(path, lambda content: content["model"].update(width=32)),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_other_files_are_refused_in_one_line(path, capsys, kind):
    DAMAGES[kind](path)
    with pytest.raises(UserError, match=r"model\.pt") as caught:
        load_model(path)
    assert len(str(caught.value)) < 500
    assert "code that ran" not in capsys.readouterr().out


def repeated(weight):
    """A tensor with the same shape and one entry in memory."""
    return torch.zeros(1).expand(weight.shape)


def cast(content, convert):
    content["weights"] = {name: convert(weight) for name, weight in content["weights"].items()}


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda content: content["weights"].popitem(), "weights and settings do not match"),
        (lambda content: content["weights"].update(more=torch.zeros(1)), "more is not in the model"),
        (lambda content: cast(content, repeated), "do not match"),
        (lambda content: cast(content, torch.Tensor.to_sparse), "do not match"),
        (lambda content: content.update(weights=5), "weights is damaged"),
        (lambda content: content.update(weights=dict.fromkeys(content["weights"], "x")), "do not match"),
        (lambda content: next(iter(content["weights"].values())).fill_(float("nan")), "NaN or infinite weights"),
        (lambda content: cast(content, lambda w: w.long()), "do not match"),
        (lambda content: cast(content, lambda w: w.cfloat()), "do not match"),
        (lambda content: cast(content, lambda w: w > 0), "do not match"),
        (lambda content: cast(content, lambda w: w.to("meta")), "not"),
        (lambda content: cast(content, lambda w: torch.quantize_per_tensor(w, 0.1, 0, torch.qint8)), "not"),
        (lambda content: content.update(vocabulary=None), "vocabulary is damaged"),
        (lambda content: content["vocabulary"].append(7), "vocabulary is damaged"),
        (lambda content: content.update(vocabulary="words"), "vocabulary is damaged"),
        (lambda content: content.update(instances=None), "instances is damaged"),
        (lambda content: content["instances"].update(max_tokens=-1), "max_tokens"),
        (lambda content: content.update(provenance=None), "provenance is damaged"),
        (lambda content: content["model"].update(encoder_layers=1001), "encoder_layers"),
        (lambda content: content["model"].update(decoder_layers=10**9), "decoder_layers"),
        (lambda content: content["model"].update(form={"position_offset": 10**9}), "position_offset"),
    ],
)
def test_unusable_content_is_refused(path, edit, words):
    change(path, edit)
    with pytest.raises(UserError, match=words):
        load_model(path)


def test_half_precision_becomes_float32(trained, path):
    change(path, lambda content: cast(content, torch.Tensor.half))
    loaded = load_model(path)
    for name, parameter in loaded.model.named_parameters():
        assert parameter.dtype == torch.float32
        assert parameter.requires_grad
        assert torch.equal(parameter, trained.model.state_dict()[name].half().float()), name


def test_loading_makes_no_random_numbers(path):
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    load_model(path)
    assert torch.equal(torch.rand(3), expected)


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(UserError, match="is a folder"):
        load_content(tmp_path)


# Initializing


def fresh(architecture, **values):
    torch.manual_seed(99)
    return build_transformer(model_settings(architecture, **values), 24)


def names(model):
    return {name for name, _ in model.named_parameters()}


def sentence_model_for(model):
    """A sentence model with the same form."""
    return make_model("sentence_transformer", form=model.settings.form.model_dump() | {"learned_sentences": None})


WIDER = [
    "g_transformer",
    "rst_serial",
    "rst_parallel",
    "rst_mix",
    "global_context",
    "flat_transformer",
    "hybrid_context",
]


@pytest.mark.parametrize("architecture", WIDER)
def test_sentence_model_gives_what_corresponds(architecture):
    """The sentence model's attention becomes the group attention of fused layers."""
    model, untouched = fresh(architecture), fresh(architecture).state_dict()
    weights = sentence_model_for(model).state_dict()
    copied = copy_weights(model, weights)
    new = (".global_.", ".rst.", ".gate.", ".distances.", ".sentences.", "context.")
    assert names(model) - copied == {name for name in names(model) if any(part in name for part in new)}
    for name, parameter in model.named_parameters():
        if name in copied:
            assert torch.equal(parameter, weights[name.replace("_attention.group.", "_attention.")]), name
        else:
            assert torch.equal(parameter, untouched[name]), name


ONE_LAYER = {"context": {"layers": 1}}


@pytest.mark.parametrize(
    ("other", "architecture", "values"),
    [
        *(("sentence_transformer", name, {}) for name in ("document_transformer", "g_transformer_only_global")),
        ("sentence_transformer", "concatenation", {}),
        ("g_transformer", "g_transformer", {}),
        ("global_context", "global_context", {}),
        ("global_context", "global_context", ONE_LAYER),  # the vectors of further layers start fresh
    ],
)
def test_equal_model_gives_all_parts(other, architecture, values):
    weights, model = make_model(other, **values).state_dict(), fresh(architecture)
    copied = copy_weights(model, weights)
    assert copied == weights.keys() == names(model) if values is not ONE_LAYER else copied == weights.keys()
    assert all(torch.equal(model.state_dict()[name], weights[name]) for name in copied)


def test_more_combined_layers_keep_what_is_there():
    other = make_model("g_transformer", upper_layers=1)
    model = fresh("g_transformer", upper_layers=2)
    copied = copy_weights(model, other.state_dict())
    assert "encoder.1.self_attention.gate.weight" in copied
    assert "encoder.0.self_attention.group.in_weight" in copied
    assert "encoder.0.self_attention.global_.in_weight" not in copied


@pytest.mark.parametrize("architecture", WIDER)
def test_the_way_back_drops_the_wider_attention(architecture):
    other = make_model(architecture)
    model = sentence_model_for(other)
    assert copy_weights(model, other.state_dict()) == names(model)
    attention = other.encoder[1].self_attention
    assert torch.equal(model.encoder[1].self_attention.in_weight, getattr(attention, "group", attention).in_weight)


@pytest.mark.parametrize(
    ("values", "n_symbols", "message"),
    [
        ({"width": 32}, 24, "has shape"),
        ({"feed_forward_width": 32}, 24, "feed_forward.inner.weight has shape"),
        ({"encoder_layers": 3}, 24, "has no parameter encoder.2"),
        ({"decoder_layers": 1}, 24, "has the additional parameter decoder.1"),
        ({}, 25, r"embedding\.weight has shape"),
    ],
)
def test_models_of_another_size_are_refused(values, n_symbols, message):
    weights = make_model("sentence_transformer", n_symbols=n_symbols).state_dict()
    with pytest.raises(UserError, match=message):
        copy_weights(fresh("g_transformer", **values), weights)
