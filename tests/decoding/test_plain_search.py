"""Search on the device, compared with a plain search that recomputes every prefix and keeps lists. Ugly input."""

import numpy as np
import pytest
import torch
from architectures import slow_but
from core_fixtures import make_batch, make_model, random_sentence
from plain_search import search

from docmt.decoding.top_k import BLOCK, BlockwiseTopK
from docmt.text.vocabulary import BOS, EOD, EOS, N_SPECIALS

ARCHITECTURES = [
    "g_transformer",
    "sentence_transformer",
    "concatenation",
    "document_transformer",
    "document_transformer_aligned",
    "global_context",
    "doct",
    "han_encoder",
    "han",
    "san",
]
LIMITS = {"max_length_ratio": 1.0, "max_length_offset": 2}


class PlainSearch:
    """Beam search for one document by the rules in docs/decoding.md, as simple as possible."""

    def __init__(self, model, source, beam):
        self.model, self.source, self.beam = model, source, beam
        self.is_free = model.settings.target_stream == "free"
        limits = [len(sentence) if len(sentence) > 2 else 0 for sentence in source]
        self.limits = [sum(limits) + 2 * len(limits)] if self.is_free else limits

    def run(self):
        running, finished = [(0.0, [])], []
        while running:
            every = sorted(self.candidates(running), key=lambda candidate: -candidate[0])[: 2 * self.beam]
            running = []
            for rank, (total, labels) in enumerate(every):
                score = total / len(labels)
                if not self.ends(labels):
                    running.append((total, labels))
                elif rank < self.beam and (len(finished) < self.beam or score > max(finished)[0]):
                    finished.append((score, total, labels))
            running = running[: self.beam]
            best = max(finished)[0] if len(finished) >= self.beam else -np.inf
            if running and max(running)[0] / len(running[0][1]) <= best:
                break
        return [(labels, total) for _, total, labels in sorted(finished, reverse=True)[: self.beam]]

    def candidates(self, running):
        """All allowed continuations with their log probabilities."""
        scores = self.log_probabilities([labels for _, labels in running])
        for (total, labels), row in zip(running, scores, strict=True):
            yield from ((total + float(row[token]), [*labels, token]) for token in self.allowed(labels, len(row)))

    def allowed(self, labels, n_symbols):
        words = range(N_SPECIALS, n_symbols)
        if self.is_free:
            must_end = len(labels) >= self.limits[0]
            if labels and labels[-1] == EOS:
                return [EOD] if must_end else [BOS, EOD]
            return [EOS] if must_end else [EOS, *words]
        n_words = len(self.words(labels)[-1])
        if n_words >= self.limits[labels.count(EOS)]:
            return [EOS]
        return [EOS, *words] if n_words else words

    def words(self, labels):
        sentences = [[]]
        for token in labels:
            if token == EOS:
                sentences.append([])
            else:
                sentences[-1].append(token)
        return sentences

    def ends(self, labels):
        return labels[-1] == EOD if self.is_free else labels.count(EOS) == len(self.source)

    def log_probabilities(self, prefixes):
        """Log probabilities of the next symbols, by the teacher-forced model, one prefix at a time."""
        return torch.stack([self.next_log_probabilities(labels) for labels in prefixes])

    def next_log_probabilities(self, labels):
        if self.is_free:
            target = [np.array([BOS, *labels, EOS]), *[np.array([], int)] * (len(self.source) - 1)]
        else:
            sentences = self.words(labels)
            sentences += [[]] * (len(self.source) - len(sentences))
            target = [np.array([BOS, *sentence, EOS]) for sentence in sentences]
        batch = make_batch(self.model.settings, [(self.source, target)])
        with torch.no_grad():
            states = self.model(batch.src_tokens_S, batch.tgt_inputs_N, self.model.place(batch.layout))
            return self.model.logits(states[len(labels)]).log_softmax(-1)


def documents_of(lengths, n_symbols=24, seed=0):
    generator = np.random.default_rng(seed)
    return [[random_sentence(generator, n, n_symbols) for n in document] for document in lengths]


DOCUMENTS = [[3, 0, 2], [1], [0], [4, 4], [0, 0, 1]]


@pytest.mark.parametrize(
    ("architecture", "n_symbols"),
    [
        *(pytest.param(name, 24, marks=() if name == "g_transformer" else pytest.mark.slow) for name in ARCHITECTURES),
        ("g_transformer", 2 * BLOCK + 9),
        pytest.param("document_transformer", 2 * BLOCK + 9, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("beam_size", slow_but((3,), (1, 3)))
def test_the_search_finds_what_a_plain_search_finds(architecture, beam_size, n_symbols):
    model = make_model(architecture, n_symbols=n_symbols)
    documents = documents_of(DOCUMENTS, n_symbols)
    for source, hypotheses in zip(documents, search(model, documents, beam_size=beam_size, **LIMITS), strict=True):
        plain = PlainSearch(model, source, beam_size)
        expected = [[[w for w in s if w >= N_SPECIALS] for s in plain.words(labels)[:-1]] for labels, _ in plain.run()]
        assert [hypothesis.sentences for hypothesis in hypotheses] == expected
        totals = [total for _, total in plain.run()]
        assert [hypothesis.log_probability for hypothesis in hypotheses] == pytest.approx(totals, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("architecture", ["g_transformer", "sentence_transformer", "document_transformer"])
def test_ties_are_broken_the_same_way_every_time(architecture):
    """The model cannot distinguish the words in pairs, so both words have the same scores."""
    model = make_model(architecture)
    with torch.no_grad():
        model.embedding.weight[N_SPECIALS + 1 :: 2] = model.embedding.weight[N_SPECIALS:-1:2]
    documents = documents_of(DOCUMENTS)
    first, second = (search(model, documents, beam_size=4, **LIMITS) for _ in range(2))
    assert first == second
    for source, hypotheses in zip(documents, first, strict=True):
        (best, total), *_ = PlainSearch(model, source, 4).run()
        assert hypotheses[0].log_probability == pytest.approx(total, rel=1e-5)
        assert sum(len(sentence) for sentence in hypotheses[0].sentences) == sum(word >= N_SPECIALS for word in best)


@pytest.mark.slow
def test_ten_thousand_tokens():
    model = make_model("g_transformer")
    documents = documents_of([[9_990, 3, 0, 2], [5]])
    for source, hypotheses in zip(
        documents, search(model, documents, beam_size=2, max_length_ratio=0.004, max_length_offset=1), strict=True
    ):
        assert [len(sentence) > 0 for sentence in hypotheses[0].sentences] == [len(s) > 2 for s in source]
        target = [np.array([BOS, *sentence, EOS]) for sentence in hypotheses[0].sentences]
        batch = make_batch(model.settings, [(source, target)])
        logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, model.place(batch.layout)))
        expected = logits.log_softmax(-1).gather(1, batch.tgt_labels_N[:, None]).sum()
        assert hypotheses[0].log_probability == pytest.approx(float(expected.detach()), rel=1e-4)


@pytest.mark.parametrize("n_symbols", [N_SPECIALS + 2, BLOCK, BLOCK + 1, 5 * BLOCK, 1000])
@pytest.mark.parametrize("beam", [1, 4])
def test_the_best_blocks_hold_the_best_candidates(n_symbols, beam):
    generator = torch.Generator().manual_seed(n_symbols)
    scores = torch.randn(3 * beam, n_symbols, generator=generator).log_softmax(-1)
    base = torch.randn(3, beam, 2, generator=generator)
    base[1, :, 0] = -torch.inf  # nothing but `</s>`
    base[2, 0] = -torch.inf
    plain = scores + base[:, :, 0].flatten()[:, None]
    plain[:, :N_SPECIALS] = -torch.inf
    plain[:, EOS] = scores[:, EOS] + base[:, :, 1].flatten()
    expected = plain.view(3, -1).topk(2 * beam, dim=1)
    candidates = BlockwiseTopK(n_symbols, N_SPECIALS, [EOS], beam, torch.device("cpu"))
    values, codes = candidates.best(scores.clone(), base)
    assert torch.equal(values, expected.values)
    finite = values.isfinite()
    assert torch.equal(codes[finite], expected.indices[finite])


def test_free_streams_of_one_batch_do_not_mix():
    """Some streams have as many sentences as their source. Others have fewer, like the prefixes in a search."""
    model = make_model("document_transformer")
    sources = documents_of([[3, 0, 2], [1], [2, 3], [4, 0]])
    targets = documents_of([[2, 1, 4], [5], [3], [0]], seed=1)
    pairs = [
        (source, target + [np.array([], int)] * (len(source) - len(target)))
        for source, target in zip(sources, targets, strict=True)
    ]

    def states(documents):
        batch = make_batch(model.settings, documents)
        with torch.no_grad():
            return model(batch.src_tokens_S, batch.tgt_inputs_N, model.place(batch.layout))

    # In a free stream, every token is an input.
    together = states(pairs).split([sum(map(len, target)) for _, target in pairs])
    for rows, pair in zip(together, pairs, strict=True):
        torch.testing.assert_close(rows, states([pair]), rtol=1e-4, atol=1e-5)
