"""A window of Chromium."""

import pytest
from webdriver import Browser


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(window):
    """Window for the reader. A test fails if it leaves an error in the console."""
    window.resize(1300, 900)
    yield window
    assert window.console() == []
    assert window.run("return window.attacked === undefined")
