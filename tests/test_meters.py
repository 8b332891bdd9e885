"""Progress of long computations in a log. pytest's standard error is no terminal."""

import logging

import pytest

from docmt import logs
from docmt.logs import Meter


@pytest.fixture
def clock(monkeypatch):
    """A clock in seconds, set by the test."""
    seconds = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: seconds[0])
    return seconds


def test_log_has_a_line_per_half_minute(clock, caplog):
    with caplog.at_level(logging.INFO), Meter(1000, label="translate", unit="sentences") as meter:
        for now in (10, 31, 40, 61, 95):
            clock[0] = float(now)
            meter.add(100)
    assert [record.getMessage() for record in caplog.records] == [
        "translate: 200 of 1000 sentences, 6.5 per second, 02:04 left",
        "translate: 400 of 1000 sentences, 6.6 per second, 01:31 left",
        "translate: 500 of 1000 sentences, 5.3 per second, 01:35 left",
    ]


def test_what_is_left_may_be_nothing_or_unknown(clock, caplog):
    caplog.set_level(logging.INFO)
    with Meter(5, label="score", unit="sentences") as meter:
        meter.add(5)
        clock[0] = 31.0
        meter.add(0)
    with Meter(1, label="score", unit="sentences") as meter:
        clock[0] = 70.0
        meter.add(0)
    assert [record.getMessage() for record in caplog.records] == [
        "score: 5 of 5 sentences, 0.2 per second, 00:00 left",
        "score: 0 of 1 sentences, 0.0 per second, ? left",
    ]
