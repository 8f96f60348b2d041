"""What holds for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from report_sample import Sample


@pytest.fixture(scope="session", autouse=True)
def devices_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Runs of the tests hold devices among themselves only: neither another test process nor a real run is in their way."""
    from specrun import device

    device.PLACE = tmp_path_factory.mktemp("devices")


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A result with its run folder, to be reported; nobody may change its files."""
    from report_sample import sample

    return sample(tmp_path_factory.mktemp("reported") / "runs" / "r1")
