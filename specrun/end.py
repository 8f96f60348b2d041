"""End a run that cannot go on: its machine is gone, its time is over. What was measured is concluded, and nothing is judged."""

from __future__ import annotations

from pathlib import Path

from specrun import conclude, entry, manifest, run
from specrun.blocks import set_aside
from specrun.errors import Refused
from specrun.run import Run


def end(folder: Path) -> Run:
    """Conclude what the finished blocks hold; tries without an end are set aside and kept.

    No verdict follows, whatever the figures: who may stop a run when it pleases could stop it when it looks well. Raises
    SpecrunError if it is concluded already, Refused if it is at work or no block is finished, EnvironmentTrouble if the folder
    cannot be written.
    """
    found = run.load(folder)
    with run.kept_in(folder), run.alone(folder):
        manifest.open_still(folder)
        if not conclude.blocks(found):
            raise Refused(
                f"run {folder.name} has no finished block: there is nothing to conclude", "keep the folder, or go on with it"
            )
        if not conclude.unfinished(found):
            raise Refused(f"every block of run {folder.name} is measured", f"`specrun run --resume {folder.name}` concludes it")
        for block in folder.glob("b[0-9][0-9]"):
            if not (block / "block.json").exists():
                set_aside(block)
        entry.finish(found)
    return found
