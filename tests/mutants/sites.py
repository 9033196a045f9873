"""Find every place of the package that can give a finding's code, and say how to disable it or make it fire always.

A place is the code's word as an argument of a call, or at the head of a tuple or table row that leads to one. A class of
trouble with the Hub (`Trouble.GATED`) counts as the code that the table in `hub/findings.py` gives it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tao_runtime.codes import CODES

# What takes a code without making a finding of it: choices, repairs, and the table of codes itself.
NO_FINDING = {"wants", "Change", "_text_changes", "Code"}
# Tables of rules and of forms; tests/contract/test_mutation.py disables and forces each of their rules by itself.
RULE_TABLES = {"Rule", "required_rule", "meta"}
MAX_CALLERS = 2
MAX_TEXT = 80

Function = ast.FunctionDef | ast.AsyncFunctionDef
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        code: whose rows must fail.
        module: path below `tao_runtime`, without its suffix.
        function: around the changed node; empty in a table.
        text: source of what is changed.
        line: of the place in the source.
        kind: `never` (the place gives nothing) or `always` (its guard is passed whatever comes).
        node: number of the changed node in the order of `ast.walk`.
        change: `true`, `false` (a test), `drop` (a statement) or `word` (another code in its place).
    """

    code: str
    module: str
    function: str
    text: str
    line: int
    kind: str
    node: int
    change: str

    @property
    def name(self) -> str:
        """What a report calls it; it stays the same when lines move."""
        return f"{self.code} {self.kind} {self.module} {self.function}: {self.text}"


class Module:
    """The parsed source of one module, with the way up from every node."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes = list(ast.walk(self.tree))
        self.number = {node: place for place, node in enumerate(self.nodes)}
        self.parent = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield (child, parent) from a node up to the module."""
        while node in self.parent:
            yield node, self.parent[node]
            node = self.parent[node]

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the innermost function around a node."""
        return next((up for _, up in self.above(node) if isinstance(up, Function)), None)

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call)]


def read_package(folder: Path) -> list[Module]:
    """Parse every module of the package."""
    paths = sorted(path for path in folder.rglob("*.py") if path.name not in {"__init__.py", "codes.py"})
    return [Module(path, path.relative_to(folder).with_suffix("").as_posix()) for path in paths]


def find_mutants(modules: list[Module]) -> list[Mutant]:
    """Return the mutants of all codes with a rule number, in the order of the source, each once."""
    troubles = _codes_of_troubles(modules)
    found: dict[tuple[object, ...], Mutant] = {}
    for module in modules:
        for node in module.nodes:
            code = _code_of(module, node, troubles)
            if code is not None and _makes_a_finding(module, node):
                for one in _mutants_at(modules, module, node, code):
                    found.setdefault((one.code, one.module, one.node, one.change), one)
    return list(found.values())


def callee(call: ast.Call) -> str:
    """Return the last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _codes_of_troubles(modules: list[Module]) -> dict[str, str]:
    """Read the table that gives each class of trouble with the Hub its code."""
    (findings,) = (module for module in modules if module.name == "hub/findings")
    tables = (node for node in findings.nodes if isinstance(node, ast.Dict))
    rows = ((key, row) for table in tables for key, row in zip(table.keys, table.values, strict=True))
    return {
        key.attr: str(row.elts[0].value)
        for key, row in rows
        if isinstance(key, ast.Attribute) and isinstance(row, ast.Tuple) and isinstance(row.elts[0], ast.Constant)
    }


def _code_of(module: Module, node: ast.AST, troubles: dict[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CODES:
        return node.value if CODES[node.value].rule else None
    if module.name == "hub/connection" and isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Trouble":
        return troubles.get(node.attr)
    return None


def _makes_a_finding(module: Module, node: ast.AST) -> bool:
    """Tell a place that gives a code from one that compares, selects or counts it."""
    child, parent = next(module.above(node))
    if isinstance(parent, ast.IfExp):
        return child is not parent.test and _makes_a_finding(module, parent)
    if isinstance(parent, ast.Call):
        return child is not parent.func and callee(parent) not in NO_FINDING | RULE_TABLES
    if isinstance(parent, ast.Tuple):
        is_list_of_words = all(isinstance(one, ast.Constant) for one in parent.elts)
        is_head = child is parent.elts[0] or isinstance(node, ast.Attribute)
        return is_head and not is_list_of_words and not isinstance(module.parent[parent], ast.Subscript)
    is_trouble = isinstance(node, ast.Attribute)
    return is_trouble and (isinstance(parent, ast.Return) or (isinstance(parent, ast.Dict) and child in parent.values))


def _mutants_at(modules: list[Module], module: Module, node: ast.AST, code: str, depth: int = 0) -> Iterator[Mutant]:
    """Yield the mutants of one place; without a guard of its own, also those of the calls of the function around it."""

    def mutant(kind: str, changed: ast.AST, change: str) -> Mutant:
        around, row = module.function_of(changed), changed
        name = around.name if around else ""
        if isinstance(module.parent[changed], ast.Tuple):
            row = module.parent[changed]
        elif isinstance(table := module.parent[changed], ast.Dict):
            row = table.keys[table.values.index(changed)] or changed  # type: ignore[arg-type]
        text = ast.unparse(row).partition("\n")[0][:MAX_TEXT]
        return Mutant(code, module.name, name, text, node.lineno, kind, module.number[changed], change)  # type: ignore[attr-defined]

    guards = list(_guards(module, node))
    if guards:
        (test, fires_when), *_ = guards
        yield mutant("never", test, "false" if fires_when else "true")
        for test, fires_when in guards:
            yield mutant("always", test, "true" if fires_when else "false")
        return
    statement = next(up for _, up in module.above(node) if isinstance(up, ast.stmt))
    if depth == 0:
        is_alone = isinstance(statement, ast.Expr | ast.Raise)
        changed, change = (statement, "drop") if is_alone else (node, "word")
        yield mutant("never", changed, change)
    function = module.function_of(node)
    if function is not None and depth < MAX_CALLERS and _is_made_for_a_caller(module, statement, function):
        for other, call in _calls_of(modules, module, function):
            yield from _mutants_at(modules, other, call, code, depth + 1)


def _guards(module: Module, node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests nearest to a node that decide whether it is reached, and the value with which it is.

    They are the `if` around it, and the last `if` before it in its block that leaves the block.
    """
    for child, parent in module.above(node):
        if isinstance(child, Function | ast.ExceptHandler):
            return
        found = []
        if isinstance(child, ast.stmt):
            leaving = [one for one in _before(child, parent) if isinstance(one, ast.If) and isinstance(one.body[-1], ENDS)]
            found += [(one.test, False) for one in leaving[-1:]]
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            in_body = child in parent.body if isinstance(parent.body, list) else child is parent.body
            found.append((parent.test, in_body))
        elif isinstance(parent, ast.comprehension | ast.GeneratorExp | ast.ListComp):
            found += [(test, True) for one in getattr(parent, "generators", [parent]) for test in one.ifs]
        elif isinstance(parent, ast.For) and child is parent.iter:
            found += [(one.test, True) for one in parent.body if isinstance(one, ast.If)][:1]
        if found:
            yield from reversed(found)
            return


def _is_made_for_a_caller(module: Module, statement: ast.stmt, function: Function) -> bool:
    """Tell whether a function without a guard only words what its caller has found."""
    is_handler = any(isinstance(up, ast.ExceptHandler) for _, up in module.above(statement))
    return not is_handler and (isinstance(statement, ast.Return) or function.name.startswith("_"))


def _before(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    blocks = (getattr(parent, name, []) for name in ("body", "orelse", "finalbody"))
    return next((block[: block.index(statement)] for block in blocks if isinstance(block, list) and statement in block), [])


def _calls_of(modules: list[Module], module: Module, function: Function) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls of a function: in its module if its name is private, anywhere if no other function has its name."""
    name = function.name
    named = [one for other in modules for one in other.nodes if isinstance(one, Function) and one.name == name]
    if name.startswith("_") or len(named) > 1:
        modules = [module]
    for other in modules:
        for call in other.calls:
            if callee(call) == name and other.function_of(call) is not function:
                yield other, call
