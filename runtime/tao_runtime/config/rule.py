"""State knowledge that spans several keys: what is wrong, where it was learned, and how it is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tao_runtime.codes import CODES
from tao_runtime.config.fields import Section
from tao_runtime.errors import Finding, FixKind, Severity, Where

SpecT = TypeVar("SpecT", bound=Section)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the spec; the attributes are those of `RuleContext`. None = not known."""

    backend: str | None = None
    num_train_records: int | None = None
    num_val_records: int | None = None
    num_gpus: int | None = None
    has_video: bool | None = None
    stages_models: bool = True
    weight_names: frozenset[str] | None = None
    unwritable: Mapping[str, str] | None = None
    stale_caches: Mapping[str, str] | None = None
    fingerprint: str | None = None


NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class RuleContext(Generic[SpecT]):
    """What rules are judged from: the spec and the facts that are known about data and machine; None = not known.

    Attributes:
        spec: the parsed spec.
        backend: back end that will run it; None takes the spec's own.
        num_train_records: records of the training annotations, before a validation split.
        num_val_records: records of the validation annotations.
        num_gpus: GPUs that the job will see.
        has_video: whether any record has a video.
        given: the nested dictionary as the user wrote it, to tell a written value from a default.
        stages_models: whether the launch layer resolves hf_model:// before the job starts.
        weight_names: names of the weights in the model's folder.
        unwritable: output keys whose folder can't be made or written here, with the reason.
        stale_caches: by data set name, samples that cosmos-rl would read though they were made from something else, in words.
        fingerprint: of all that samples are made from, a few hexadecimal digits.
    """

    spec: SpecT
    backend: str | None = None
    num_train_records: int | None = None
    num_val_records: int | None = None
    num_gpus: int | None = None
    has_video: bool | None = None
    given: Mapping[str, Any] | None = None
    stages_models: bool = True
    weight_names: frozenset[str] | None = None
    unwritable: Mapping[str, str] | None = None
    stale_caches: Mapping[str, str] | None = None
    fingerprint: str | None = None

    @property
    def effective_backend(self) -> str:
        """The back end that rules are judged for."""
        return self.backend or str(getattr(self.spec, "backend", "native"))

    def is_written(self, path: str) -> bool:
        """Return whether the user's own dictionary holds the key; True when that dictionary isn't known."""
        value: Any = self.given
        if value is None:
            return True
        for name in path.split("."):
            if not isinstance(value, Mapping) or name not in value:
                return False
            value = value[name]
        return True


@dataclass(frozen=True, slots=True)
class Fault:
    """One breach of a rule.

    Attributes:
        what: the fact, with the received value.
        key: dotted path that the fix changes.
        fix: one action, pasteable where there is one.
        skipped: True when the rule couldn't be judged; `what` then says which fact is missing.
    """

    what: str
    key: str
    fix: str
    fix_kind: FixKind = FixKind.EDIT
    skipped: bool = False


def not_known(key: str, fact: str, fix: str) -> Fault:
    """Say that a rule can't be judged without a fact."""
    return Fault(f"not checked: {fact} is not known", key, fix, FixKind.MANUAL, skipped=True)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: a word of `tao_runtime.codes.CODES`; its entry holds the number in the table of static rules.
        reads: dotted paths that the rule looks at.
        find: yields the breaches.
        source: where the knowledge comes from.
        backends: back ends it speaks of; empty = all.
    """

    code: str
    reads: tuple[str, ...]
    find: Callable[[RuleContext[Any]], Iterable[Fault]]
    source: str
    severity: Severity = Severity.ERROR
    backends: tuple[str, ...] = ()

    @property
    def number(self) -> str | None:
        """Number in the table of static rules, None outside it."""
        return CODES[self.code].rule

    def judge(self, context: RuleContext[Any]) -> list[Finding]:
        """Return the findings of this rule; none when it doesn't speak of the context's back end."""
        if self.backends and context.effective_backend not in self.backends:
            return []
        return [
            Finding(
                self.code,
                fault.what,
                Where(key=fault.key),
                fault.fix,
                Severity.SKIPPED if fault.skipped else self.severity,
                fault.fix_kind,
                self.number,
            )
            for fault in self.find(context)
        ]
