"""Register what can be done: skill and action to spec class, rules and the dialects it can be rendered in."""

from __future__ import annotations

from dataclasses import dataclass

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.config.export import ExportSpec
from tao_runtime.config.fields import Section
from tao_runtime.config.inference import InferenceSpec
from tao_runtime.config.names import COSMOS_REASON
from tao_runtime.config.quantize import QuantizeSpec
from tao_runtime.config.rules import RULES, Rule
from tao_runtime.config.train import TrainSpec
from tao_runtime.errors import Finding, FixKind, TaoError


@dataclass(frozen=True, slots=True)
class Action:
    """One action of one skill.

    Attributes:
        skill: name of the skill directory.
        name: name of the action.
        model: class of its spec.
        summary: what it does, for reference pages.
        dialects: back ends that `spec build --for` can render it for.
    """

    skill: str
    name: str
    model: type[Section]
    summary: str
    dialects: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of this action."""
        return RULES[self.name]


ACTIONS: tuple[Action, ...] = (
    Action(COSMOS_REASON, "train", TrainSpec, "fine-tune on video questions, in full or with LoRA", ("native", "cosmos-rl")),
    Action(
        COSMOS_REASON, "evaluate", EvaluateSpec, "answer a data set's questions and score the answers", ("native", "cosmos-rl")
    ),
    Action(COSMOS_REASON, "inference", InferenceSpec, "ask one prompt about media files", ("native",)),
    Action(COSMOS_REASON, "quantize", QuantizeSpec, "store a model in fewer bits", ("native",)),
    Action(COSMOS_REASON, "export", ExportSpec, "write a checkpoint as an adapter or a merged folder", ("native",)),
)


def action_of(skill: str, action: str) -> Action:
    """Return a registered action.

    Raises:
        TaoError: USAGE_ACTION_UNKNOWN, naming the actions that there are.
    """
    for candidate in ACTIONS:
        if (candidate.skill, candidate.name) == (skill, action):
            return candidate
    known = ", ".join(f"{candidate.skill} {candidate.name}" for candidate in ACTIONS)
    raise TaoError(
        Finding("USAGE_ACTION_UNKNOWN", f"{skill} has no action {action}", fix=f"Known: {known}.", fix_kind=FixKind.MANUAL)
    )


def skill_names() -> tuple[str, ...]:
    """Return the names of the skills that have actions, each once."""
    return tuple(dict.fromkeys(action.skill for action in ACTIONS))
