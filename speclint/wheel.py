"""Reading Python source inside a wheel: find names, follow imports, evaluate literals. Nothing is ever imported."""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field

MISSING: object = object()


@dataclass(frozen=True)
class Found:
    """A definition: the module that holds it and its node (class, function or the assigned expression)."""

    module: str
    node: ast.AST


@dataclass(frozen=True)
class Wheel:
    """An open wheel whose modules are parsed on first use."""

    archive: zipfile.ZipFile
    _trees: dict[str, ast.Module | None] = field(default_factory=dict)
    _names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, archive: zipfile.ZipFile) -> Wheel:
        return cls(archive, {}, frozenset(archive.namelist()))

    def path(self, module: str) -> str | None:
        """The member that holds a dotted module, or None."""
        stem = module.replace(".", "/")
        return next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if p in self._names), None)

    def tree(self, module: str) -> ast.Module | None:
        """The parsed module, or None if the wheel has none of that name."""
        if module not in self._trees:
            path = self.path(module)
            self._trees[module] = ast.parse(self.archive.read(path)) if path else None
        return self._trees[module]

    def modules(self, *prefixes: str) -> list[str]:
        """Dotted names of the modules at or under the given ones, sorted."""
        stems = sorted(n[:-3].removesuffix("/__init__").replace("/", ".") for n in self._names if n.endswith(".py"))
        return [m for m in stems if any(m == p or m.startswith(f"{p}.") for p in prefixes)]

    def find(self, module: str, name: str, depth: int = 0) -> Found | None:
        """Where `module.name` is defined, imports followed; None if that is outside the wheel."""
        tree = self.tree(module)
        if tree is None or depth > 12:
            return None
        for node in statements(tree.body):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name and not _is_overload(node):
                return Found(module, node)
            if name in _targets(node) and (value := getattr(node, "value", None)) is not None:
                return Found(module, value)
            if (found := self._imported(module, node, name, depth)) is not None:
                return found
        return None

    def _imported(self, module: str, node: ast.stmt, name: str, depth: int) -> Found | None:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            return None
        for alias in node.names:
            if alias.name != "*" and (alias.asname or alias.name) != name:
                continue
            if isinstance(node, ast.Import):
                return self._whole(alias.name)
            source = self._source(module, node)
            original = name if alias.name == "*" else alias.name
            found = self.find(source, original, depth + 1) or self._whole(f"{source}.{original}")
            if found is not None or alias.name != "*":
                return found
        return None

    def _whole(self, module: str) -> Found | None:
        tree = self.tree(module)
        return Found(module, tree) if tree is not None else None

    def _source(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = (self.path(module) or "").endswith("__init__.py")
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + (1 if is_package else 0)]
        return ".".join([*parts, node.module] if node.module else parts)

    def lookup(self, module: str, node: ast.AST) -> Found | None:
        """The definition that a name or dotted expression in `module` stands for."""
        if isinstance(node, ast.Name):
            return self.find(module, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.lookup(module, node.value)
            return self.find(owner.module, node.attr) if owner and isinstance(owner.node, ast.Module) else None
        return None

    def value(self, module: str, node: ast.AST | None) -> object:
        """The literal an expression stands for (a constant, a class attribute, an enum member), else MISSING."""
        if node is None:
            return MISSING
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError):
            pass
        if isinstance(node, ast.Call):
            return self._called(module, node)
        if isinstance(node, ast.Attribute) and (owner := self.lookup(module, node.value)):
            return self.attribute(owner, node.attr)
        found = self.lookup(module, node)
        is_alias = found is None or found.node is node or isinstance(found.node, ast.ClassDef | ast.FunctionDef)
        return MISSING if is_alias or found is None else self.value(found.module, found.node)

    def attribute(self, owner: Found, name: str) -> object:
        """The literal value of a class attribute; base classes are searched too."""
        if not isinstance(owner.node, ast.ClassDef):
            return MISSING
        for node in owner.node.body:
            if name in _targets(node):
                return self.value(owner.module, getattr(node, "value", None))
        bases = (self.lookup(owner.module, base) for base in owner.node.bases)
        values = (self.attribute(base, name) for base in bases if base)
        return next((v for v in values if v is not MISSING), MISSING)

    def _called(self, module: str, call: ast.Call) -> object:
        """Default of `Field(default=…)`, `field(…)`, `get_field(Class, "name")`."""
        called = ast.unparse(call.func).rsplit(".", 1)[-1]
        if called == "get_field" and len(call.args) == 2:
            owner = self.lookup(module, call.args[0])
            name = self.value(module, call.args[1])
            return self.attribute(owner, str(name)) if owner else MISSING
        if called in {"Field", "field"}:
            return self.value(module, keyword(call, "default") or (call.args[0] if call.args else None))
        return MISSING


def _is_overload(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument of a call."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, those inside `if` and `try` included: the type checkers' branch comes first."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from statements(node.body)
            yield from statements(node.orelse)


def _targets(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.AnnAssign):
        return {node.target.id} if isinstance(node.target, ast.Name) else set()
    if isinstance(node, ast.Assign):
        return {t.id for t in node.targets if isinstance(t, ast.Name)}
    return set()


def texts(tree: ast.AST) -> Iterator[str]:
    """Every string constant; an f-string as one text with `{}` for its holes."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in node.values)
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            yield "".join(str(p) for p in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value
