"""Signals that ask a training to stop."""

import logging
import os
import signal
from types import SimpleNamespace

import pytest

from docmt.training.agreement import Interrupted, StopSignals


def test_a_signal_during_the_message_of_another_is_no_second_message(caplog):
    class Echo(logging.Handler):
        """Sends the signal again while the first message is being written, as a launcher and its cluster can."""

        def emit(self, record):
            if record.levelno == logging.WARNING:
                log.removeHandler(self)
                os.kill(os.getpid(), signal.SIGTERM)

    log = logging.getLogger("docmt.training.agreement")
    log.addHandler(Echo())
    with StopSignals(SimpleNamespace(world_size=1)) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        stop.notice()
        with pytest.raises(Interrupted):
            stop.check()
    assert len(caplog.records) == 1
