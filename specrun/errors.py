"""What can go wrong in the user's world, with the exit status that says so.

    SpecrunError
    ├── EnvironmentTrouble   40  the machine or the engine cannot do it
    ├── Refused              30  lint, approval or engine version forbid the run
    ├── Interrupted         130  Ctrl-C or SIGTERM during a run
    └── NotWritten           50  measured completely, but the result could not be written

Anything else that is raised is a fault of this program and ends in a traceback.
"""

from __future__ import annotations


class SpecrunError(Exception):
    """A clear message and a way out; `status` is the exit status of the command."""

    status = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class EnvironmentTrouble(SpecrunError):
    status = 40


class Refused(SpecrunError):
    status = 30


class Interrupted(SpecrunError):
    status = 130


class NotWritten(SpecrunError):
    status = 50
