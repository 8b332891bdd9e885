"""Thousands of damaged and hostile files, the same in every run. They are read, or refused in one line, in time."""

import pytest
from hostile_files import SAMPLES, files_of, read_sample, survey

from docmt.corpora.readers.registry import FORMATS

N_INPUTS = 400
SECONDS = 2
"""CPU time for a file with at most 64 KB. Quadratic patterns take minutes."""


def test_every_reader_has_a_sample(tmp_path):
    assert set(SAMPLES) == set(FORMATS) - {"files"}
    for reader in SAMPLES:
        if all(files_of(reader).values()):
            assert read_sample(reader, files_of(reader), tmp_path) > 0, reader


@pytest.mark.slow
@pytest.mark.parametrize("reader", SAMPLES)
def test_readers_survive_what_they_are_given(reader, tmp_path):
    def use(files):
        read_sample(reader, files, tmp_path)

    bad = survey(reader, files_of(reader), use, n_inputs=N_INPUTS, seconds=SECONDS)
    assert not bad, "\n".join(bad)
