"""Check what a spec makes of each record (rules D5 to D8 and D14): frames, pixels, and tokens against the model's length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tao_runtime.config.evaluate import EvaluateSpec
from tao_runtime.config.train import TrainSpec
from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.lint import LintResult
from tao_runtime.errors import Finding, FixKind, Severity, TaoError, Where, raise_errors
from tao_runtime.hub.token_ids import token_id_findings
from tao_runtime.media.annotations import MediaRef, Record, record_of, scan_records
from tao_runtime.media.conversation import Purpose
from tao_runtime.media.geometry import read_most_positions
from tao_runtime.media.probe import VideoFacts
from tao_runtime.media.sampling import VisionOptions, frame_range
from tao_runtime.plan.tokens import Counted, MediaTokens, TokenCounter, count_records, open_counter

TOKEN_RULES = ("D5", "D6", "D7", "D8", "D14")
# What sampling itself finds wrong.
_SAMPLING_CODES = frozenset({"DATA_TOO_FEW_FRAMES", "DATA_TIME_RANGE", "DATA_ASPECT_RATIO", "DATA_PIXEL_BOUNDS"})
TOKEN_CODES = (
    *sorted(_SAMPLING_CODES),
    "DATA_SAMPLE_TOO_LONG",
    "DATA_PIXEL_FLOOR",
    "DATA_ANSWER_CUT",
)
# What the template and its special tokens find wrong, as far as the check of fields has not named it already; every other
# fault that keeps a record from being counted belongs to another rule.
_TEXT_CODES = frozenset({"RUN_CHAT_TEMPLATE", "DATA_LITERAL_TOKENS", "DATA_TAG_COUNT", "DATA_TURNS_MISSING"})
_RULES = f"{', '.join(TOKEN_RULES[:-1])} and {TOKEN_RULES[-1]}"
_ROUND_TO = 1024
_TOKEN_AREA_PX = 32 * 32


@dataclass(frozen=True, slots=True)
class Reading:
    """Say how a spec has records read.

    Attributes:
        model: name of the model whose tokenizer and vision tower read them.
        model_key: spec path of that name.
        options: the vision section.
        vision_key: spec path of that section.
        system_prompt: put before every conversation.
        purpose: whole samples, or prompts.
        max_length: most tokens.
        length_key: spec path that limits it.
        reserved: tokens of that limit that are kept for the answer.
        cuts: an over-long text loses its end instead of being refused.
        tokenizer: name of another model whose tokenizer is taken; None takes the model's own.
        prompt_key: spec path of the system prompt.
    """

    model: str
    model_key: str
    options: VisionOptions
    vision_key: str
    system_prompt: str
    purpose: Purpose
    max_length: int
    length_key: str
    reserved: int = 0
    cuts: bool = False
    tokenizer: str | None = None
    prompt_key: str = "custom.system_prompt"


def reading_of(spec: object, backend: str | None = None) -> Reading | None:
    """Return how a spec has records read; None when the action reads none, or its vision section contradicts itself (C4).

    Args:
        spec: a parsed spec.
        backend: back end that will run it; None takes the spec's own.
    """
    try:
        if isinstance(spec, TrainSpec):
            return Reading(
                model=spec.policy.model_name_or_path,
                model_key="policy.model_name_or_path",
                options=VisionOptions(**spec.custom.vision.model_dump()),
                vision_key="custom.vision",
                system_prompt=spec.custom.system_prompt,
                purpose="training",
                max_length=spec.policy.model_max_length,
                length_key="policy.model_max_length",
                cuts=(backend or spec.backend) == "cosmos-rl",
            )
        if isinstance(spec, EvaluateSpec):
            return _evaluation_reading(spec)
    except ValueError:
        return None
    return None


def _evaluation_reading(spec: EvaluateSpec) -> Reading:
    base = spec.model.base_model_path if spec.model.enable_lora else None
    return Reading(
        model=base or spec.model.model_name,
        model_key="model.base_model_path" if base else "model.model_name",
        options=VisionOptions(**spec.vision.model_dump()),
        vision_key="vision",
        system_prompt=spec.dataset.system_prompt,
        purpose="prompt",
        max_length=spec.model.max_length - spec.generation.max_tokens,
        length_key="model.max_length",
        reserved=spec.generation.max_tokens,
        tokenizer=spec.model.tokenizer_model_name,
        prompt_key="dataset.system_prompt",
    )


@dataclass(slots=True)
class TokenChecks:
    """Judge counted records one by one; the fixes are known when all were seen.

    Attributes:
        file: the annotation file.
        reading: how the spec has them read.
        facts: what was measured of videos, by the name that records give them.
        named: codes that the check of fields found in this file.
        num_counted: records whose tokens were counted.
        num_uncounted: records with a fault that kept them from being counted.
        longest: most tokens of a record.
    """

    file: str
    reading: Reading
    facts: Mapping[str, VideoFacts] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    num_counted: int = 0
    num_uncounted: int = 0
    longest: int = 0
    _out: Collector = field(init=False)
    _fewest_frames: int | None = None
    _smallest_share_px: float | None = None

    def __post_init__(self) -> None:
        self._out = Collector(self.file)

    @property
    def counts(self) -> Mapping[tuple[str, Severity], int]:
        """How often each code and severity was found in all."""
        return self._out.counts

    def take(self, counted: Counted) -> None:
        """Judge one record."""
        record = counted.record
        if counted.tokens is None:
            self.num_uncounted += 1
            for fault in counted.faults:
                self._take_fault(record, fault)
            return
        self.num_counted += 1
        self.longest = max(self.longest, counted.tokens.total)
        limit = self.reading.max_length
        if counted.tokens.total > limit:
            kept = (
                f", {self.reading.reserved} of {self.reading.length_key} kept for the answer" if self.reading.reserved else ""
            )
            self._add("DATA_SAMPLE_TOO_LONG", f"{counted.tokens.total} tokens, the limit is {limit}{kept}", record)
        if self.reading.cuts and counted.tokens.answer_start >= limit:
            what = f"the answer begins at token {counted.tokens.answer_start} and {limit} are kept: nothing is taught"
            self._add("DATA_ANSWER_CUT", what, record)
        for media in dict.fromkeys(counted.media):
            self._take_media(record, media)

    def _take_fault(self, record: Record, fault: Finding) -> None:
        options = self.reading.options
        # With both bounds in the spec, its own rule says so once.
        if fault.code not in _SAMPLING_CODES | (_TEXT_CODES - self.named) or (
            fault.code == "DATA_PIXEL_BOUNDS" and options.min_pixels is not None and options.max_pixels is not None
        ):
            return
        if fault.code == "DATA_TOO_FEW_FRAMES":
            seen = [self._available(ref) for ref in record.media if ref.kind == "video" and ref.path in self.facts]
            # No value of a key makes two frames of one: that record's own fix says so.
            frames = [number for number in (*seen, self._fewest_frames) if number is not None and number >= 2]
            self._fewest_frames = min(frames, default=None)
        self._add(fault.code, fault.what, record, fault)

    def _available(self, ref: MediaRef) -> int:
        facts = self.facts[ref.path]
        try:
            first, last = frame_range(facts.num_frames, facts.average_fps, self.reading.options)
        except TaoError:
            return facts.num_frames
        return last - first + 1

    def _take_media(self, record: Record, media: MediaTokens) -> None:
        budget = media.budget_tokens
        if budget is None or media.num_vision_tokens <= budget:
            return
        more = media.num_vision_tokens / budget - 1
        what = (
            f"total_pixels leaves {budget:.0f} tokens for {media.num_frames} frames; min_pixels keeps each at "
            f"{media.width} x {media.height} px, {media.num_vision_tokens} tokens, {more:.0%} more"
        )
        self._add("DATA_PIXEL_FLOOR", what, record)
        token_px = media.num_frames * media.height * media.width / media.num_vision_tokens
        share = budget * token_px / media.num_frames
        self._smallest_share_px = min(share, self._smallest_share_px or share)

    def _add(self, code: str, what: str, record: Record, fault: Finding | None = None) -> None:
        fix, kind = ("", FixKind.EDIT) if fault is None else (fault.fix, fault.fix_kind)
        self._out.add(code, what, fix, record=(record.index, record.raw.get("id")), kind=kind)

    def findings(self, most_positions: int) -> list[Finding]:
        """Return what was found, each fault with the change of the spec that mends it for all records.

        Args:
            most_positions: longest sequence that the model itself reads.
        """
        fixes = self._fixes(most_positions)
        return [
            replace(f, fix=fixes[f.code][0], fix_kind=fixes[f.code][1])
            if f.code in fixes and f.fix_kind is not FixKind.MANUAL
            else f
            for f in self._out.summary()
        ]

    def _fixes(self, most_positions: int) -> dict[str, tuple[str, FixKind]]:
        vision, options = self.reading.vision_key, self.reading.options
        fixes = {"DATA_TIME_RANGE": _set(f"{vision}.video_start=null", f"{vision}.video_end=null")}
        longer = self._longer(most_positions)
        fixes |= {"DATA_SAMPLE_TOO_LONG": longer, "DATA_ANSWER_CUT": longer}
        if options.nframes is None:
            fixes["DATA_TOO_FEW_FRAMES"] = _set(f"{vision}.max_frames=2")
        elif self._fewest_frames is not None:
            fixes["DATA_TOO_FEW_FRAMES"] = _set(f"{vision}.nframes={self._fewest_frames // 2 * 2}")
        if options.max_pixels is not None:
            fixes["DATA_PIXEL_BOUNDS"] = _set(f"{vision}.min_pixels={max(1, options.max_pixels // 2)}")
        fixes["DATA_PIXEL_FLOOR"] = self._lower_floor()
        return fixes

    def _longer(self, most_positions: int) -> tuple[str, FixKind]:
        needed = self.longest + self.reading.reserved
        if needed > most_positions:
            what = f"{needed} tokens are more than the {most_positions} that the model reads: take fewer frames or pixels."
            return what, FixKind.MANUAL
        return _set(f"{self.reading.length_key}={min(-(-needed // _ROUND_TO) * _ROUND_TO, most_positions)}")

    def _lower_floor(self) -> tuple[str, FixKind]:
        # The sampler raises the floor by a twentieth before it compares.
        floor_px = int((self._smallest_share_px or 0) / 1.05)
        if floor_px < _TOKEN_AREA_PX:
            return "The budget is less than one token for two frames: take fewer frames, or raise total_pixels.", FixKind.MANUAL
        return _set(f"{self.reading.vision_key}.min_pixels={floor_px}")


def checks_of(result: LintResult, reading: Reading) -> TokenChecks:
    """Return the checks of a set that was linted."""
    return TokenChecks(str(result.annotations), reading, result.media_facts, frozenset(code for code, _ in result.counts))


def open_reading(reading: Reading, model: Path, tokenizer: Path | None = None) -> tuple[TokenCounter, int]:
    """Return what counts tokens as a model does, and the longest sequence that the model reads.

    Args:
        reading: how the spec has records read.
        model: folder with the model's config.json; weights are not needed.
        tokenizer: folder of the tokenizer; None takes the model's.

    Raises:
        TaoError: ACCESS_MODEL_TOKENIZER, ACCESS_MODEL_INCOMPLETE, RUN_MODEL_UNSUPPORTED: the model reads nothing;
            DATA_LITERAL_TOKENS: the system prompt holds a special token.
    """
    raise_errors(token_id_findings(model, reading.model_key, tokenizer))
    counter = open_counter(model, reading.options, reading.system_prompt, tokenizer)
    most_positions = read_most_positions(model)
    if counter.tokens_in_prompt:
        what = f"{reading.prompt_key} contains {counter.tokens_in_prompt[0]}, which would open a turn or a medium of its own"
        fix = f"Remove it from {reading.prompt_key}."
        raise TaoError(
            Finding("DATA_LITERAL_TOKENS", what, Where(key=reading.prompt_key), fix, fix_kind=FixKind.EDIT, rule="D10")
        )
    return counter, most_positions


def counted_records(
    annotations: str | Path,
    media_dir: str | Path | None,
    counter: TokenCounter,
    checks: TokenChecks,
    findings: list[Finding] | None = None,
) -> Iterator[Counted]:
    """Count an annotation file's records one by one; `checks` judges each on its way.

    Args:
        annotations: the file.
        media_dir: folder that media paths start from.
        counter: of the model.
        checks: takes every record.
        findings: what is wrong with the file as a whole is added here.

    Raises:
        TaoError: DATA_ANNOTATIONS_UNREADABLE when the file can't be opened.
    """
    of_file: list[Finding] = [] if findings is None else findings
    records = (record_of(index, raw) for index, raw in scan_records(annotations, of_file))
    folder = None if media_dir is None else Path(media_dir)
    for counted in count_records(records, folder, counter, checks.facts, checks.reading.purpose):
        checks.take(counted)
        yield counted


def not_counted(why: str, fix: str) -> Finding:
    """Return the finding that tokens were not counted, which is no pass."""
    kind = FixKind.COMMAND if fix.startswith("hf download") else FixKind.MANUAL
    what = f"the tokens of records were not counted (rules {_RULES}): {why}"
    return Finding("DATA_TOKENS_NOT_CHECKED", what, Where(), fix, Severity.SKIPPED, kind, "D6")


def _set(*changes: str) -> tuple[str, FixKind]:
    return " ".join(f"--set {change}" for change in changes), FixKind.EDIT
