"""What a YAML parser's complaint means to whoever wrote the file: where to look, what is there, the way out."""

from __future__ import annotations

import re
from typing import NamedTuple

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError


class Fault(NamedTuple):
    """A place in the text, as character index, and words for it."""

    place: int
    message: str
    help: str


INDENTED = "keys of one mapping begin in the same column, and what they hold begins further right"
QUOTE = "quote the value"
CLOSE = "close what was opened, or quote text that holds brackets, braces, commas or quotes"
# The first row whose expression is found in the parser's words counts.
AT_PROBLEM = (
    (r"found character '\\t'", "a tab stands before a value or at the beginning of a line", "write blanks instead"),
    (r"found character '(.)' that cannot start", "a value cannot begin with `{}`", QUOTE),
    (r"while scanning a block scalar", "`>` and `|` begin a block of text of several lines", QUOTE),
    (r"while scanning an (alias|anchor)", "a value that begins with `*` or `&` names another place of the file", QUOTE),
    (r"while (scanning|parsing) a tag|while parsing a node", "a value that begins with `!` is a tag", QUOTE),
    (r"block end>, but found '-'", "a list item stands among the keys of a mapping", INDENTED),
    (r"block end>, but found '<scalar>'", "this follows a value that has ended", "quote the whole value"),
    (r"block end>, but found '([]}])'", "`{}` closes nothing that was opened", CLOSE),
    (
        r"block end>, but found ','",
        "a comma after a value that stands in no brackets",
        "write a list as [a, b], or quote the whole text",
    ),
    (r"block (mapping|sequence)", "this is indented otherwise than what stands above it", INDENTED),
    (r"block collection", "this is indented otherwise than the list items above it", INDENTED),
    (r"sequence entries are not allowed", "a list item stands on the line of its key", "begin the list on a line of its own"),
    (r"mapping keys are not allowed", "a value cannot begin with `? `", QUOTE),
    (r"expected the node content, but found '([^<].*)'", "`{}` stands where a value is expected", CLOSE),
    (r"unknown escape character '(.)'", "`\\{}` is no escape in double quotes", "double the backslash, or use single quotes"),
    (r"flow (mapping|sequence) expected", "a comma or a closing bracket is missing before this", CLOSE),
)
AT_CONTEXT = (
    (r"while scanning a quoted scalar", "this quote is never closed", "close it"),
    (r"while scanning a simple key", "a key without its colon", "write `key: value`, with a blank after the colon"),
)
OTHERWISE = "indentation, quotes and brackets are the usual causes"


def fault(error: Exception, text: str, opened: int | None) -> Fault:
    """The fault that an exception of the parser means; `opened`: index of the innermost bracket that is still open."""
    if isinstance(error, ReaderError):
        return Fault(error.position, f"character U+{error.character:04X} is not allowed in YAML", "remove it")
    if not isinstance(error, MarkedYAMLError):
        return Fault(0, "the YAML reader gave up", OTHERWISE)
    said = " ".join(filter(None, (error.context, error.problem))).replace("\n", " ")
    at = error.problem_mark.index if error.problem_mark else 0
    begin = error.context_mark.index if error.context_mark else at
    if "mapping values are not allowed" in said:
        return Fault(at, *_second_colon(text, at))
    if opened is not None and ("stream end" in said or ("flow" in said and "\n" in text[opened:at])):
        return Fault(opened, f"this `{text[opened]}` is never closed", CLOSE)
    for place, rows in ((begin, AT_CONTEXT), (at, AT_PROBLEM)):
        for expression, message, help in rows:
            if match := re.search(expression, said):
                return Fault(place, message.format(*match.groups()), help)
    return Fault(at, said, OTHERWISE)


def _second_colon(text: str, at: int) -> tuple[str, str]:
    """A colon in an unquoted value, or a key below a value that it seems to continue."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    if re.search(r":\s", before):
        return "an unquoted value cannot hold `: `", QUOTE
    return "a key stands further right than the one above it, which has a value already", INDENTED
