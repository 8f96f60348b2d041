"""Read restricted YAML: plain data and the position of every node, in one pass over ruamel's parser events.

One document, a block mapping at column 0, at most 64 levels and 600 kB; no anchors, aliases, merge keys, tags, duplicate
keys, nor scalars that YAML 1.1 and 1.2 read differently. Whatever the bytes are, the outcome is a `Document`: what is
wrong with them stands in its `problems`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from speclint.diagnostic import Span, pointer
from speclint.positions import BOM, LINE_END, Document, Node, Problem
from speclint.scalar import NotPlain, plain, short

__all__ = ["Document", "Node", "Problem", "parse", "read"]

MAX_BYTES = 600_000  # some thirty results; this many bytes or nodes are read in well under a second
MAX_DEPTH = 64
MAX_NODES = 25_000
MAX_PROBLEMS = 50
TEXT = "; quote it if it is text"


class _Stop(Exception):
    """Reading ends here: nothing after this problem can be trusted."""


def read(path: Path) -> Document:
    """Read a file. Raises OSError if it cannot be opened."""
    with path.open("rb") as file:
        return parse(file.read(MAX_BYTES + 1), str(path))


def parse(source: bytes, path: str) -> Document:
    """Read bytes; never raises, whatever they are."""
    if len(source) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1000} kB"
        return _unread(path, source, "SL006", message, "keep raw records in runs/; a spec with results stays far below")
    body = source.removeprefix(BOM)
    try:
        document = _blank(path, source, body.decode())
    except UnicodeDecodeError as error:
        return _not_utf_8(_blank(path, source, body.decode(errors="replace")), body, error.start)
    return _Builder(document).build()


def _blank(path: str, source: bytes, text: str) -> Document:
    starts = [0, *(match.end() for match in LINE_END.finditer(text))]
    return Document(path, source, text, None, [], {}, [], starts)


def _not_utf_8(document: Document, body: bytes, wrong: int) -> Document:
    index = len(body[:wrong].decode())
    utf_16 = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    message = "the file is UTF-16, not UTF-8" if utf_16 else f"byte 0x{body[wrong]:02x} is not UTF-8"
    document.problems.append(Problem("SL007", message, "save the file as UTF-8", document.between(index, index + 1)))
    return document


def _unread(path: str, source: bytes, code: str, message: str, help: str) -> Document:
    return Document(path, source, "", None, [Problem(code, message, help, Span(1, 1, 1, 1))], {}, [], [0])


class _Builder:
    """Turns parser events into data and nodes of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.events: Iterator[Any] = YAML(typ="safe", pure=True).parse(document.text)
        self.last = 0  # end of the last leaf: marks of block collections lie after the comments that follow them
        self.count = 0
        self.open: list[int] = []  # where the brackets and braces begin that are not closed yet

    def build(self) -> Document:
        data = None
        try:
            data = self._document()
        except _Stop:
            pass
        except Exception as error:
            # ruamel raises more than YAMLError on bytes that are no YAML (ValueError, IndexError, RecursionError, ...)
            self._problem_of(error)
        return self.document._replace(data=data)

    def _document(self) -> Any:
        first = self._next()
        while not isinstance(first, (MappingStartEvent, SequenceStartEvent, ScalarEvent, AliasEvent)):
            if isinstance(first, StreamEndEvent):
                self._stop("SL001", "the file holds nothing", 0, 0, "a pair spec begins with `schema: pair-spec/v1`")
            if isinstance(first, DocumentStartEvent) and (first.version or first.tags):
                self._stop("SL003", "directives are not allowed", 0, 0, "remove the lines that begin with %")
            first = self._next()
        begin = first.start_mark.index
        if not isinstance(first, MappingStartEvent) or first.flow_style or first.start_mark.column:
            help = "write `key: value` lines that begin in the first column"
            self._stop("SL001", "the file is not a block mapping at column 0", begin, begin, help)
        data = self._node(first, "", 0, None)
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                begin = event.start_mark.index
                self._stop("SL005", "a second document begins here", begin, begin + 3, "one spec a file")
        return data

    def _next(self) -> Any:
        self.count += 1
        if self.count > MAX_NODES:
            self._stop("SL006", f"more than {MAX_NODES} YAML nodes", self.last, self.last, "split the file")
        return next(self.events)

    def _node(self, event: Any, path: str, depth: int, key: tuple[int, int] | None) -> Any:
        begin = event.start_mark.index
        self._refuse(event, begin)
        if isinstance(event, ScalarEvent):
            return self._scalar(event, path, key)
        if depth >= MAX_DEPTH:
            self._stop("SL006", f"more than {MAX_DEPTH} levels deep", begin, begin + 1, "flatten it")
        self.last = begin
        fill = self._mapping if isinstance(event, MappingStartEvent) else self._sequence
        if event.flow_style:
            self.open.append(begin)
        value, closed = fill(path, depth + 1)
        if event.flow_style:
            self.open.pop()
            self.last = closed.end_mark.index
        at = key or (begin, min(self.last, begin + 1))
        self.document.nodes[path] = Node(at, begin, self.last, block=not event.flow_style)
        return value

    def _mapping(self, path: str, depth: int) -> tuple[dict[str, Any], Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            name, place = self._key(event)
            inner = path + pointer(name)
            repeated = name in found
            if repeated:
                first = self.document.span(inner, on_key=True)
                help = "keep one of the two; readers differ in which they take"
                self._note("SL002", f"`{short(name)}` is written twice", *place, help, inner, ((first, "first here"),))
                inner += f" at {place[0]}"  # its nodes must not take the place of the first one's
            value = self._node(self._next(), inner, depth, place)
            if not repeated:
                found[name] = value
        return found, event

    def _sequence(self, path: str, depth: int) -> tuple[list[Any], Any]:
        found: list[Any] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            found.append(self._node(event, f"{path}/{len(found)}", depth, None))
        return found, event

    def _key(self, event: Any) -> tuple[str, tuple[int, int]]:
        begin, end = event.start_mark.index, event.end_mark.index
        self._refuse(event, begin)
        if not isinstance(event, ScalarEvent):
            self._stop("SL001", "a key must be text", begin, begin + 1, "write a plain or quoted word before the colon")
        self._encodable(event, begin, end)
        self.document.scalars.append((begin, end))
        self.last = end
        name: str = event.value
        if event.implicit[0] and name == "<<":
            self._stop("SL003", "merge keys are not allowed", begin, end, "write the values out")
        if event.implicit[0]:
            value = plain(name)
            if not isinstance(value, str):
                what = value.why if isinstance(value, NotPlain) else f"it is read as {json.dumps(value)}, not as text"
                self._note("SL004", f"key `{short(name)}`: {what}", begin, end, f'quote it: "{short(name)}"')
        return name, (begin, end)

    def _scalar(self, event: ScalarEvent, path: str, key: tuple[int, int] | None) -> Any:
        begin, end = event.start_mark.index, event.end_mark.index
        self._encodable(event, begin, end)
        self.last = max(end, self.last)
        if end > begin:
            self.document.scalars.append((begin, end))
        place = key if key and end == begin else (begin, end)  # `key:` with nothing after it
        self.document.nodes[path] = Node(key or place, place[0], place[1], block=False)
        if not event.implicit[0]:
            return event.value
        value = plain(event.value)
        if isinstance(value, NotPlain):
            self._note("SL004", f"`{short(event.value)}`: {value.why}", begin, end, value.help, path)
            return event.value
        return value

    def _encodable(self, event: ScalarEvent, begin: int, end: int) -> None:
        """Escapes such as \\ud800 make text that no file can hold."""
        if any("\ud800" <= character <= "\udfff" for character in event.value):
            self._stop("SL007", "an escape here is half a character, which UTF-8 cannot hold", begin, end, "write it whole")

    def _refuse(self, event: Any, begin: int) -> None:
        if isinstance(event, AliasEvent):
            self._stop("SL003", "aliases are not allowed", begin, begin + len(event.anchor) + 1, f"write the value out{TEXT}")
        if event.anchor is not None:
            end = begin + len(event.anchor) + 1
            self._stop("SL003", "anchors are not allowed", begin, end, f"write the value where it is needed{TEXT}")
        if event.tag is not None:
            self._stop("SL003", f"tags are not allowed ({event.tag})", begin, begin + 1, f"remove the tag{TEXT}")

    def _note(
        self,
        code: str,
        message: str,
        begin: int,
        end: int,
        help: str,
        path: str = "",
        related: tuple[tuple[Span, str], ...] = (),
    ) -> None:
        problems = self.document.problems
        problems.append(Problem(code, message, help, self.document.between(begin, end), path, related))
        if len(problems) >= MAX_PROBLEMS:
            raise _Stop

    def _stop(self, code: str, message: str, begin: int, end: int, help: str) -> NoReturn:
        self._note(code, message, begin, end, help)
        raise _Stop

    def _problem_of(self, error: Exception) -> None:
        from speclint.yaml_faults import fault

        found = fault(error, self.document.text, self.open[-1] if self.open else None)
        self._note("SL001", found.message, found.place, found.place + 1, found.help)
