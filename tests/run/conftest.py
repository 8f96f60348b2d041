"""What several test files of the runner share."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from sealed_run import Sealed, sealed_run

from specrun import drive

LATE_SHARE = drive.LATE_SHARE


@pytest.fixture(scope="session", autouse=True)
def calm() -> Iterator[None]:
    """Windows are not voided because the machine that runs the tests is busy; `strict` is for tests of just that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drive, "LATE_SHARE", math.inf)
        yield


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "LATE_SHARE", LATE_SHARE)


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    """A finished, signed run; nobody may change its files."""
    return sealed_run(tmp_path_factory.mktemp("sealed"))
