"""Say how one JSON value differs from another, and turn the one into the other again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from typing import Any

Difference = dict[str, Any]
Path = tuple[str | int, ...]


def differences(old: Any, new: Any, at: Path = ()) -> Iterator[Difference]:
    """Yield what must change in `old` to give `new`, types included: 25 is not 25.0, null is not absent.

    Yields:
        `{"at": path, "was": value, "now": value}`; without `was` where the key is new, without `now` where it is gone.
    """
    if type(old) is dict and type(new) is dict:
        for key in (*old, *(key for key in new if key not in old)):
            if key not in new:
                yield {"at": [*at, key], "was": old[key]}
            elif key not in old:
                yield {"at": [*at, key], "now": new[key]}
            else:
                yield from differences(old[key], new[key], (*at, key))
    elif type(old) is list and type(new) is list and len(old) == len(new):
        for place, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, (*at, place))
    elif not is_same(old, new):
        yield {"at": list(at), "was": old, "now": new}


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are written alike: same types all the way down, zeros of one sign."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


def apply(changes: Sequence[Difference], value: Any) -> Any | None:
    """Return a copy of the value with all changes made; None when one of them no longer fits what is there."""
    changed = deepcopy(value)
    for change in changes:
        *path, last = change["at"]
        place = changed
        for step in path:
            if not _holds(place, step):
                return None
            place = place[step]
        if not _fits(change, place, last):
            return None
        if "now" in change:
            place[last] = deepcopy(change["now"])
        else:
            del place[last]
    return changed


def put(value: dict[str, Any], path: Path, new: Any) -> dict[str, Any]:
    """Return a copy of an object with a new value at a path; all that does not lead there is shared."""
    result: dict[str, Any] = dict(value)
    place: Any = result
    for step in path[:-1]:
        place[step] = copy(place[step])
        place = place[step]
    place[path[-1]] = new
    return result


def are_changes(value: Any) -> bool:
    """Tell whether a value read from a file is a list of changes."""
    return isinstance(value, list) and all(
        isinstance(one, dict) and one.keys() <= {"at", "was", "now"} and isinstance(one.get("at"), list) and one["at"]
        for one in value
    )


def _holds(place: Any, step: Any) -> bool:
    if isinstance(place, dict):
        return isinstance(step, str) and step in place
    return isinstance(place, list) and type(step) is int and 0 <= step < len(place)


def _fits(change: Difference, place: Any, last: Any) -> bool:
    if "was" in change:
        return _holds(place, last) and is_same(place[last], change["was"])
    return isinstance(place, dict) and isinstance(last, str) and last not in place
