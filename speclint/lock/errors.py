"""What can be wrong with a model's files; the message says what, the hint how to get on."""

from __future__ import annotations


class LockError(Exception):
    """An artifact that cannot be resolved or read."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
