"""A keyboard in the folder of a store."""

from __future__ import annotations

import pytest

from tests.cli.driver import Keyboard
from tests.conftest import StoreBox


@pytest.fixture
def tg(store: StoreBox, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Keyboard:
    """Types commands in the folder of an empty store."""
    monkeypatch.chdir(store.folder)
    monkeypatch.setenv("USER", "tester")
    monkeypatch.setenv("TERM", "dumb")
    return Keyboard(store, capfd)
