"""HTML and SVG as values. Every string is escaped on its way out, so nothing that a spec holds can become markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

Attribute = str | float | bool | None
VOID = frozenset(("br", "col", "hr", "meta"))
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
"""Controls, and characters that hide or reorder the text beside them."""


@dataclass(frozen=True, slots=True)
class Element:
    """A tag with its attributes and children; `str()` of it is the markup."""

    tag: str
    attributes: tuple[tuple[str, Attribute], ...]
    children: tuple[Node, ...]

    def __str__(self) -> str:
        head = self.tag + "".join(_attribute(name, value) for name, value in self.attributes)
        return f"<{head}>" if self.tag in VOID else f"<{head}>{markup(self.children)}</{self.tag}>"


Node = Element | str


def el(tag: str, *children: Node | Iterable[Node] | None, **attributes: Attribute) -> Element:
    """An element. `class_` and `aria_label` become `class` and `aria-label`; attributes that are None or False are left out."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Element(tag, tuple(names.items()), tuple(_flat(children)))


def _flat(children: Iterable[Node | Iterable[Node] | None]) -> Iterable[Node]:
    for child in children:
        if isinstance(child, str | Element):
            yield child
        elif child is not None:
            yield from child


def markup(nodes: Iterable[Node]) -> str:
    """The nodes one after another; strings are text, never markup."""
    return "".join(str(node) if isinstance(node, Element) else text(node) for node in nodes)


def text(value: str) -> str:
    """A string as HTML text or attribute value; characters that would hide or reorder others are made visible."""
    return escape(HIDDEN.sub("\N{REPLACEMENT CHARACTER}", value))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{text(value) if isinstance(value, str) else format(round(value, 2), "g")}"'


def document(title: str, style: str, body: Iterable[Node]) -> str:
    """A whole page that loads nothing and runs nothing: its policy allows this one style sheet and forbids all else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{markup(head)}\n<style>{style}</style>\n</head>\n'
        f"<body>\n{markup(body)}\n</body>\n</html>\n"
    )
