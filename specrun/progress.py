"""What a waiting person sees: stage, arm, block, window, time left. One moving line on a terminal, one line a block elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(slots=True)
class Progress:
    """Counts server starts and windows against the plan and estimates the time left from the pace so far."""

    steps: int
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    quiet: bool = False
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    label: str = ""
    counted: str = ""

    @property
    def moving(self) -> bool:
        return not self.quiet and self.stream.isatty()

    def step(self, label: str) -> None:
        """A server start or a window begins."""
        self.label, self.counted = label, ""
        self.show()

    def finished(self) -> None:
        """The step that began last is over."""
        self.done += 1
        self.show()

    def requests(self, count: int, of: int) -> None:
        self.counted = f", request {count}/{of}"
        self.show()

    def left(self) -> str:
        """Time left, from the mean duration of a step so far; empty before the second step."""
        if self.done < 2:
            return ""
        seconds = (time.monotonic() - self.began) / self.done * (self.steps - self.done)
        return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"

    def show(self) -> None:
        if self.moving:
            self.stream.write(f"\r\x1b[K[{self.done}/{self.steps}] {self.label}{self.counted}{self.left()}")
            self.stream.flush()

    def line(self, text: str) -> None:
        """A line that stays."""
        if self.quiet:
            return
        self.stream.write(("\r\x1b[K" if self.moving else "") + text + "\n")
        self.stream.flush()

    def milestone(self, text: str) -> None:
        """A line that stays, with the time left."""
        self.line(f"{text} ({time.monotonic() - self.began:.0f} s so far{self.left()})")
