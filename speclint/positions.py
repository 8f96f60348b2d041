"""A file that was read: its data, the position of every node, and what is wrong with it."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, NamedTuple

from speclint.diagnostic import Span

BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(r"\r\n|\r|\n")


class Problem(NamedTuple):
    """Something that reading found (SL0)."""

    code: str
    message: str
    help: str
    span: Span
    path: str = ""
    related: tuple[tuple[Span, str], ...] = ()


class Node(NamedTuple):
    """Where a value stands, as character indexes: its key (or itself, in a list), and from its first to its last."""

    key: tuple[int, int]
    start: int
    end: int
    block: bool
    """A block collection: it is shown by its key."""


class Document(NamedTuple):
    """One file: its bytes, its data (None if it cannot be used), its positions and what is wrong with it."""

    path: str
    source: bytes
    text: str
    data: Any
    problems: list[Problem]
    nodes: dict[str, Node]
    scalars: list[tuple[int, int]]
    line_starts: list[int]

    def span(self, path: str, on_key: bool = False) -> Span:
        """Where the value at a JSON Pointer stands (its key, for block collections); the nearest parent if absent."""
        while path and path not in self.nodes:
            path = path.rpartition("/")[0]
        node = self.nodes.get(path)
        if node is None:
            return self.between(0, 0)
        begin, end = node.key if on_key or node.block else (node.start, node.end)
        return self.between(begin, end)

    def offset(self, path: str) -> tuple[int, int]:
        """Byte offsets of the key at a JSON Pointer and of the end of its value, blanks and comments after it excluded.

        Raises KeyError if there is no such node.
        """
        node = self.nodes[path]
        begin = node.key[0]
        end = begin + len(self.text[begin : node.end].rstrip())
        shift = len(BOM) if self.source.startswith(BOM) else 0
        first = shift + len(self.text[:begin].encode())
        return first, first + len(self.text[begin:end].encode())

    def between(self, begin: int, end: int) -> Span:
        """Span of two character indexes."""
        line, column = self.place(begin)
        end_line, end_column = self.place(max(begin, end))
        return Span(line, column, end_line, end_column)

    def place(self, index: int) -> tuple[int, int]:
        """Line and column, from 1, of a character index."""
        line = bisect_right(self.line_starts, index)
        return line, index - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Text of a line, counted from 1, without its end."""
        begin = self.line_starts[number - 1]
        found = LINE_END.search(self.text, begin)
        return self.text[begin : found.start() if found else len(self.text)]
