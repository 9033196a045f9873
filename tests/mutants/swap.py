"""Put a mutant into the running package: the code of one function, or the value of one table, is exchanged and put back."""

import ast
import contextlib
import importlib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutants.sites import Function, Module, Mutant

# A code and a class of trouble that stand for "not this one".
OTHER_WORD = "INTERNAL_ERROR"


@contextlib.contextmanager
def mutated(mutant: Mutant, package: Path) -> Iterator[None]:
    """Let the package run with the mutant.

    A function keeps its identity, so that whoever imported it runs the mutant too.
    """
    module = Module(package / f"{mutant.module}.py", mutant.module)
    changed = module.nodes[mutant.node]
    path = [up for _, up in module.above(changed)][::-1]
    names = [one.name for one in path if isinstance(one, ast.ClassDef)]
    functions = [one for one in path if isinstance(one, Function)]
    _change(module, changed, mutant.change)
    live = importlib.import_module("tao_runtime." + mutant.module.replace("/", "."))
    if functions:
        outer = functions[0]
        code = _code_at(compile(module.tree, str(module.path), "exec"), [*names, outer.name], _first_line(outer))
        with _exchanged_code(_function_of(live, [*names, outer.name]), code):
            yield
    else:
        with _exchanged_table(live, module, path):
            yield


def _change(module: Module, node: ast.AST, change: str) -> None:
    parent = module.parent[node]
    new: ast.AST
    if change in {"true", "false"}:
        new = ast.Constant(change == "true")
    elif change == "drop":
        has_yield = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node))
        new = ast.If(ast.Constant(False), [node], []) if has_yield else ast.Pass()
    elif isinstance(node, ast.Attribute):
        new = ast.Attribute(node.value, "FORBIDDEN" if node.attr != "FORBIDDEN" else "SERVER_ERROR", ast.Load())
    else:
        new = ast.Constant(OTHER_WORD)
    for field, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, field, new)
        elif isinstance(value, list) and node in value:
            value[value.index(node)] = new
    ast.copy_location(new, node)
    ast.fix_missing_locations(module.tree)


def _first_line(function: Function) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _code_at(code: types.CodeType, names: list[str], line: int) -> types.CodeType:
    """Find the compiled code of a function by the names of its classes and its own, and its first line."""
    for place, name in enumerate(names):
        inner = [one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name]
        (code,) = inner if place < len(names) - 1 else [one for one in inner if one.co_firstlineno == line]
    return code


def _function_of(live: types.ModuleType, names: list[str]) -> types.FunctionType:
    found: Any = live
    for name in names:
        found = vars(found)[name]
    while inside := next((one for one in ("fget", "func", "__wrapped__") if hasattr(found, one)), None):
        found = getattr(found, inside)
    assert isinstance(found, types.FunctionType), f"{names} is {found!r}"
    return found


@contextlib.contextmanager
def _exchanged_code(function: types.FunctionType, code: types.CodeType) -> Iterator[None]:
    whole = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = whole


@contextlib.contextmanager
def _exchanged_table(live: types.ModuleType, module: Module, path: list[ast.AST]) -> Iterator[None]:
    """Compute the statement of a table again, in place where others may hold the table."""
    statement = next(one for one in path if isinstance(one, ast.Assign | ast.AnnAssign))
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    assert isinstance(target, ast.Name)
    whole, namespace = vars(live)[target.id], dict(vars(live))
    exec(compile(ast.Module([statement], []), str(module.path), "exec"), namespace)  # the repository's own source
    new, was = namespace[target.id], dict(whole) if isinstance(whole, dict) else whole
    if isinstance(whole, dict):
        _refill(whole, new)
    else:
        setattr(live, target.id, new)
    try:
        yield
    finally:
        if isinstance(whole, dict):
            _refill(whole, was)
        else:
            setattr(live, target.id, was)


def _refill(table: dict[Any, Any], content: dict[Any, Any]) -> None:
    table.clear()
    table.update(content)
