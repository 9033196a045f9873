"""`tao-runtime spec`: build, check, edit, explain and compare specs."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tao_runtime.cli.output import CommandResult, Parser, add_command, positive_int, severity_counts
from tao_runtime.cli.spec_edit import add_word as add_edit
from tao_runtime.config.names import ACTION_NAMES, COSMOS_REASON
from tao_runtime.errors import Finding, Severity, TaoError, Where, in_file, raise_errors

if TYPE_CHECKING:
    from tao_runtime.config.fields import Section
    from tao_runtime.config.rules import Facts
    from tao_runtime.spec.build import BuiltSpec
    from tao_runtime.spec.explain import SchemaOf


def add_parser(commands: Any, summary: str) -> None:
    """Add `spec` and its words."""
    parser: Parser = commands.add_parser("spec", help=summary, description=f"{summary[:1].upper()}{summary[1:]}.")
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
    build = add_command(words, "build", "walk overrides into a template and write the spec", _build)
    _spec_arguments(build)
    build.add_argument("--out", type=Path, metavar="FILE", help="write the spec here; without it stdout is the spec")
    build.add_argument(
        "--stage",
        action="store_true",
        help="with --for cosmos-rl: download the Hub models first and name their folders (native commands stage by themselves)",
    )
    build.add_argument("--dry-run", action="store_true", help="write and download nothing")
    check = add_command(words, "check", "judge a spec file by its schema and every rule", _check)
    _spec_arguments(check, spec_required=True)
    add_edit(words)
    explain = add_command(words, "explain", "say what a key means, what it takes and which rules read it", _explain)
    explain.add_argument("key", metavar="KEY", help="dotted path, such as train.optm_lr")
    _action_arguments(explain, action_default=None)
    explain.add_argument("--bank", type=Path, metavar="DIR", help="checkout of the bank (default: the one around here)")
    diff = add_command(words, "diff", "compare two specs by effective value", _diff)
    diff.add_argument("old", type=Path, metavar="OLD", help="spec file")
    diff.add_argument(
        "new", type=Path, metavar="NEW", nargs="?", help="spec file; without it the template is compared with OLD"
    )
    _action_arguments(diff, action_default="train")


def _action_arguments(parser: Parser, *, action_default: str | None) -> None:
    actions = tuple(dict.fromkeys(name for names in ACTION_NAMES.values() for name in names))
    parser.add_argument("--skill", choices=tuple(ACTION_NAMES), default=COSMOS_REASON, help="skill (default: %(default)s)")
    shown = "all" if action_default is None else action_default
    parser.add_argument("--action", choices=actions, default=action_default, help=f"action (default: {shown})")


def _spec_arguments(parser: Parser, *, spec_required: bool = False) -> None:
    _action_arguments(parser, action_default="train")
    helptext = "spec file" if spec_required else "start from this file instead of the template"
    parser.add_argument("--spec", type=Path, metavar="FILE", required=spec_required, help=helptext)
    parser.add_argument("--dataset", metavar="ROOT", help="ROOT/annotations.json and media under ROOT, as the action's data")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help="override; repeatable"
    )
    parser.add_argument(
        "--for",
        dest="backend",
        choices=("native", "cosmos-rl"),
        help="back end to judge for (default: the spec's); build also renders for it",
    )
    parser.add_argument(
        "--annotations", type=Path, metavar="FILE", help="training annotations to count (default: the spec's, when here)"
    )
    parser.add_argument("--num-gpus", type=positive_int, metavar="N", help="GPUs that the job will have")


def _build(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.config.train import TrainSpec
    from tao_runtime.environment import read_environment
    from tao_runtime.spec.on_disk import remember_samples
    from tao_runtime.spec.render import render, underived
    from tao_runtime.spec.stage import unstaged

    built, facts, findings = _built(arguments)
    backend = arguments.backend or "native"
    if built.model is None or any(finding.severity is Severity.ERROR for finding in findings):
        # What is not of the form may be what JSON can't hold: a date, an infinity.
        spec = None if built.model is None else built.value
        return CommandResult("spec build", {"spec": spec, "written": None}, findings)
    model, data = built.model, {"spec": built.value, "backend": backend}
    comments = ""
    more: list[str] = []
    if arguments.stage:
        model, comments, data["staged"], more = _staged(arguments, built.model, backend)
    elif backend == "cosmos-rl":
        findings = [*findings, *unstaged(arguments.action, built.model, _same_command(arguments, "--stage"))]
    text = comments + render(model, backend, facts.num_train_records)
    findings = [*findings, *underived(built.model, backend, facts.num_train_records)]
    written = None
    if arguments.out is not None and not arguments.dry_run:
        write_spec(arguments.out, text)
        written = str(arguments.out)
        if backend == "cosmos-rl" and isinstance(built.model, TrainSpec):
            remember_samples(built.model, read_environment())
    shown = "\n".join([f"wrote {written}", *more]) if written else text
    return CommandResult("spec build", {**data, "rendered": text, "written": written}, findings, shown)


def _staged(arguments: argparse.Namespace, spec: Section, backend: str) -> tuple[Section, str, dict[str, Any], list[str]]:
    """Stage the spec's Hub models; return the spec with their folders, comments, plain facts, and lines about mounts."""
    from tao_runtime.environment import read_environment
    from tao_runtime.spec.stage import mounts, source_comments, stage_models

    if backend == "native":
        what = "--stage goes with --for cosmos-rl; the native commands stage the models themselves"
        raise TaoError(Finding("USAGE_ARGUMENTS", what, Where(key="--stage"), "Leave --stage out."))
    model, sources = stage_models(arguments.action, spec, read_environment(), dry_run=arguments.dry_run)
    folders = [str(folder) for folder in mounts(sources)]
    facts = {"models": {key: source.to_dict() for key, source in sources.items()}, "mounts": folders}
    lines = [f"a container needs {folder} under the same path, read-only: --volume {folder}:{folder}:ro" for folder in folders]
    return model, source_comments(sources), facts, lines


def _same_command(arguments: argparse.Namespace, *more: str) -> str:
    """Return the build command as it was given, with more flags, to be pasted."""
    named = {"--skill": arguments.skill, "--action": arguments.action, "--spec": arguments.spec, "--dataset": arguments.dataset}
    named |= {"--for": arguments.backend, "--annotations": arguments.annotations, "--num-gpus": arguments.num_gpus}
    words = [part for flag, value in named.items() if value is not None for part in (flag, str(value))]
    words += [part for override in arguments.overrides for part in ("--set", override)]
    words += [] if arguments.out is None else ["--out", str(arguments.out)]
    return shlex.join(["tao-runtime", "spec", "build", *words, *more])


def _check(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.spec.render import underived

    built, facts, findings = _built(arguments)
    if built.model is not None and arguments.backend is not None:
        findings.extend(underived(built.model, arguments.backend, facts.num_train_records))
    counts = severity_counts(findings)
    text = f"{arguments.spec}: " + ", ".join(f"{number} {name}" for name, number in counts.items())
    return CommandResult("spec check", {"action": arguments.action, "counts": counts}, findings, text)


def _explain(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.spec.explain import explain_key, explanation_text

    described = explain_key(arguments.key, arguments.skill, _schemas(arguments), arguments.action)
    return CommandResult("spec explain", {"keys": described}, (), explanation_text(described))


def _schemas(arguments: argparse.Namespace) -> SchemaOf:
    """Return the bank's schemas, quick to read; where the package is installed without a bank, the same made anew."""
    from tao_runtime.bank.skills import bank_root, skill_folder
    from tao_runtime.spec.explain import schemas_in

    try:
        bank = bank_root(arguments.bank)
    except TaoError:
        if arguments.bank is not None:
            raise
        from tao_runtime.bank.schema import action_schema
        from tao_runtime.config.actions import action_of

        return lambda action: action_schema(action_of(arguments.skill, action))
    return schemas_in(skill_folder(bank, arguments.skill) / "schemas")


def _diff(arguments: argparse.Namespace) -> CommandResult:
    from tao_runtime.config.actions import action_of
    from tao_runtime.config.defaults import default_value, flatten

    model = action_of(arguments.skill, arguments.action).model
    old = flatten(model, default_value(model)) if arguments.new is None else _effective(arguments, arguments.old)
    new = _effective(arguments, arguments.new or arguments.old)
    changed = {key: {"old": old.get(key), "new": new.get(key)} for key in sorted({*old, *new}) if old.get(key) != new.get(key)}
    lines = [f"{key}: {_shown(old, key)} -> {_shown(new, key)}" for key in changed]
    return CommandResult("spec diff", {"changed": changed}, (), "\n".join(lines) or "no difference")


def _shown(values: dict[str, Any], key: str) -> str:
    return json.dumps(values[key], ensure_ascii=False) if key in values else "(absent)"


def _effective(arguments: argparse.Namespace, path: Path) -> dict[str, Any]:
    from tao_runtime.config.defaults import flatten
    from tao_runtime.spec.build import build_spec
    from tao_runtime.spec.files import read_spec_file

    built = build_spec(arguments.skill, arguments.action, (), read_spec_file(path))
    raise_errors(built.form_findings)
    return flatten(built.action.model, built.value)


# Keys of annotation file and media folder that `--dataset ROOT` stands for.
_ROOT_KEYS = {
    "train": ("custom.train_dataset.annotation_path", "custom.train_dataset.media_path"),
    "evaluate": ("dataset.annotation_path", "dataset.media_dir"),
    "quantize": ("calibration_dataset.annotation_path", "calibration_dataset.media_dir"),
}


def _overrides(arguments: argparse.Namespace) -> list[str]:
    """Return the overrides, those of root mode first so that an explicit path wins."""
    if arguments.dataset is None:
        return list(arguments.overrides)
    if arguments.action not in _ROOT_KEYS:
        raise TaoError(
            Finding("USAGE_ARGUMENTS", f"--dataset has no meaning for action {arguments.action}", fix="Leave --dataset out.")
        )
    annotations, media = _ROOT_KEYS[arguments.action]
    root = arguments.dataset.rstrip("/") or "/"
    return [f"{annotations}={root}/annotations.json", f"{media}={root}", *arguments.overrides]


def _built(arguments: argparse.Namespace) -> tuple[BuiltSpec, Facts, list[Finding]]:
    """Build once to learn the annotation paths, then judge with the counts; also return what counting found."""
    from tao_runtime.spec.build import build_spec
    from tao_runtime.spec.files import read_spec_file
    from tao_runtime.spec.fixes import SpecFile, pasteable

    base = None if arguments.spec is None else read_spec_file(arguments.spec)
    overrides = _overrides(arguments)
    secrets = _secrets(arguments, overrides)
    facts, found = _facts(arguments, build_spec(arguments.skill, arguments.action, overrides, base))
    built = build_spec(arguments.skill, arguments.action, overrides, base, facts=facts)
    if base is None:
        return built, facts, secrets + found + built.findings
    file = SpecFile(arguments.spec, arguments.skill, arguments.action, built.action.model, base)
    mended = pasteable(
        built.findings, file, lambda value: build_spec(file.skill, file.action, overrides, value, facts=facts).findings
    )
    return built, facts, secrets + found + in_file(mended, str(arguments.spec))


def _secrets(arguments: argparse.Namespace, overrides: list[str]) -> list[Finding]:
    """Look for credentials before they are written into a spec, or go on from one that holds them."""
    from tao_runtime.environment import read_environment
    from tao_runtime.spec.secrets import secret_findings

    environment = read_environment()
    found = list(secret_findings("\n".join(overrides), "--set", environment))
    if arguments.spec is not None:
        found += secret_findings(arguments.spec.read_text(encoding="utf-8-sig"), str(arguments.spec), environment)
    return found


def _facts(arguments: argparse.Namespace, built: BuiltSpec) -> tuple[Facts, list[Finding]]:
    from tao_runtime.config.rules import Facts
    from tao_runtime.config.train import TrainSpec

    train, validation = arguments.annotations, None
    if isinstance(built.model, TrainSpec):
        custom = built.model.custom
        train = train or _if_here(custom.train_dataset.annotation_path)
        validation = _if_here(custom.val_dataset.annotation_path) if custom.val_dataset is not None else None
    found: list[Finding] = []
    num_train, has_video = _count(train, found)
    num_val, _ = _count(validation, found)
    facts = Facts(
        backend=arguments.backend,
        num_train_records=num_train,
        num_val_records=num_val,
        num_gpus=arguments.num_gpus,
        has_video=has_video,
    )
    return facts, found


def _if_here(path: str | None) -> Path | None:
    return Path(path) if path is not None and Path(path).is_file() else None


def _count(path: Path | None, findings: list[Finding]) -> tuple[int | None, bool | None]:
    """Count the records of an annotation file and say whether any has a video; None, None without a file."""
    if path is None:
        return None, None
    from tao_runtime.media.annotations import media_of, scan_records

    number, has_video = 0, False
    for _, record in scan_records(path, findings):
        number += 1
        has_video = has_video or any(kind == "video" for kind, _ in media_of(record))
    return number, has_video


def write_spec(path: Path, text: str) -> None:
    """Write a spec or rendered file, atomically.

    Raises:
        TaoError: USAGE_OUTPUT_UNWRITABLE.
    """
    from tao_runtime.files import write_text

    try:
        write_text(path, text)
    except OSError as error:
        raise TaoError(
            Finding(
                "USAGE_OUTPUT_UNWRITABLE",
                f"{path} can't be written: {error.strerror}",
                Where(file=str(path)),
                "Choose another --out.",
            )
        ) from None
