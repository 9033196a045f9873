"""Check the media files that records name (rules D3, D4, D12, D15): there, inside the media folder, readable, at their rate."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.lint_fields import is_rate
from tao_runtime.environment import cache_dir
from tao_runtime.errors import Finding, FixKind, Severity, TaoError
from tao_runtime.media.container import media_fault, refuse_stand_in
from tao_runtime.media.decode import decode_frames
from tao_runtime.media.forms import Progress
from tao_runtime.media.probe import VideoFacts, num_probes, probe_video
from tao_runtime.media.probe_cache import ProbeCache, Probed
from tao_runtime.media.quoting import as_json, is_whole, shown
from tao_runtime.media.sampling import VisionOptions, frame_range, num_frames, uniform_indices

RATE_TOLERANCE = 0.02


@dataclass(slots=True)
class MediaUse:
    """Say which records name one file: `(index, id, rate that the record gives for this file, all its videos)`."""

    kind: str
    records: list[tuple[int, Any, Any, list[Any]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MediaState:
    """Say what one named file is: usable (no fault), or why not.

    Attributes:
        fault: code, fact, fix and kind of fix; None when the file is there.
        facts: what probing measured; None for images and for what can't be used.
        right_name: the name of the one usable file that is nearly the name (`MediaFolder`); `fault` and `facts` then are those
            of the wrong name and of this file.
    """

    fault: tuple[str, str, str, FixKind] | None = None
    facts: VideoFacts | None = None
    right_name: str | None = None


class MediaChecks:
    """Collect the files that records name; then look at each file once, several at a time."""

    def __init__(self, out: Collector, media_dir: Path, vision: VisionOptions | None = None) -> None:
        self._out = out
        self._media_dir, self._vision = media_dir, vision
        self._uses: dict[Any, MediaUse] = {}
        self.states: dict[Any, MediaState] = {}

    @property
    def facts(self) -> dict[str, VideoFacts]:
        """What was measured of each readable video, by its name as records write it."""
        return {name: state.facts for name, state in self.states.items() if state.facts is not None}

    @property
    def right_names(self) -> dict[str, str]:
        """The right name of each file that records name in another letter case."""
        return {name: state.right_name for name, state in self.states.items() if state.right_name is not None}

    def take(self, index: int, raw: dict[str, Any], media: list[tuple[Any, Any]]) -> None:
        """Remember the media of one record."""
        videos = [path for kind, path in media if kind == "video"]
        rates = iter(rates_of(raw.get("video_fps"), len(videos)))
        for kind, path in media:
            rate = next(rates) if kind == "video" else None
            key = _key(path)
            if not isinstance(path, str):
                self.states[key] = MediaState(_invalid(f"the {kind} is {as_json(path)}, not the path of a file"))
            self._uses.setdefault(key, MediaUse(kind)).records.append((index, raw.get("id"), rate, videos))

    def end(self, progress: Progress | None = None) -> None:
        """Look at every file and add what is wrong, in the order of the records."""
        unseen = [(key, use.kind) for key, use in self._uses.items() if key not in self.states]
        with ProbeCache(cache_dir()) as cache, ThreadPoolExecutor(num_probes()) as pool:
            folder = MediaFolder(self._media_dir, cache, self._vision)
            looked = pool.map(lambda item: folder.look(*item), unseen)
            for number, ((key, _), state) in enumerate(zip(unseen, looked, strict=True), start=1):
                self.states[key] = state
                if progress is not None:
                    progress("media", number, len(unseen))
        for key, use in self._uses.items():
            state = self.states[key]
            if state.fault is not None:
                code, what, fix, kind = state.fault
                for index, own_id, *_ in use.records:
                    self._out.add(code, what, fix, record=(index, own_id), kind=kind)
            if state.facts is not None:
                self._judge(key, use, state.facts)

    def right_rate(self, videos: Sequence[Any]) -> float | list[float] | None:
        """Return what video_fps should be for a record with these videos; None when one of them was not measured."""
        return right_rate([self.states[path].facts if path in self.states else None for path in map(_key, videos)])

    def _judge(self, name: str, use: MediaUse, facts: VideoFacts) -> None:
        for index, own_id, rate, videos in use.records:
            if is_rate(rate) and not agrees(rate, facts):
                what = f"video_fps is {rate:g} for {shown(name)}; the file has {facts.average_fps:g}"
                right = self.right_rate(videos)
                fix = f"Set video_fps to {right}."
                if right is None:
                    fix = f"Give {shown(name)} the rate {round(facts.average_fps, 6)}; the others were not measured."
                self._warn("DATA_VIDEO_FPS_CONTRADICTS", what, fix, (index, own_id), is_mendable=right is not None)
        first = use.records[0][:2]
        if facts.num_frames < 2:
            what = f"{shown(name)} has {facts.num_frames} frame; a video needs 2"
            for index, own_id, *_ in use.records:
                self._out.add("DATA_VIDEO_ONE_FRAME", what, "Use it as an image, or leave it out.", record=(index, own_id))
        if facts.header_frames and facts.was_decoded and facts.header_frames > facts.num_frames:
            what = f"the header of {shown(name)} claims {facts.header_frames} frames, {facts.num_frames} decode"
            self._warn("DATA_VIDEO_HEADER_COUNT", what, "Copy or encode the file again.", first)
        if facts.is_variable_rate:
            what = f"the frames of {shown(name)} are unevenly spaced, {facts.average_fps:.3f} fps on average"
            fix = f"ffmpeg -i IN -vf fps={facts.average_fps:.3f} OUT, if other tools will read it."
            self._warn("DATA_VIDEO_VARIABLE_RATE", what, fix, first)
        if facts.rotation_deg:
            size = f"{facts.width} x {facts.height}"
            what = f"metadata turn {shown(name)} by {facts.rotation_deg} degrees; it is shown {size}"
            self._warn("DATA_VIDEO_ROTATED", what, "Encode it again upright, if other tools will read it.", first)
        if facts.audio_is_first:
            what = f"stream 0 of {shown(name)} is audio"
            self._warn("DATA_VIDEO_AUDIO_FIRST", what, "ffmpeg -i IN -map 0:v -map 0:a? -c copy OUT", first)

    def _warn(self, code: str, what: str, fix: str, record: tuple[int, Any], *, is_mendable: bool = False) -> None:
        kind = FixKind.EDIT if is_mendable else FixKind.MANUAL
        self._out.add(code, what, fix, record=record, severity=Severity.WARNING, kind=kind)


class MediaFolder:
    """Resolve names inside one media folder; what a name means is judged by where it ends."""

    def __init__(self, root: Path, cache: ProbeCache, vision: VisionOptions | None = None) -> None:
        self._named = root
        self._cache = cache
        self._vision = vision
        self._root = os.path.realpath(root)
        self._entries: dict[str, dict[str, list[str]]] = {}

    def look(self, name: str, kind: str) -> MediaState:
        """Say whether a name leads to usable media; videos are measured."""
        fault = self._fault(name)
        if fault is not None:
            return self._near_state(name, kind) or MediaState(fault)
        path = os.path.join(self._root, name)  # noqa: PTH118 - pathlib would drop what os.path.realpath needs
        try:
            if kind == "video":
                return MediaState(facts=self._measured(path))
            self._decode_image(path)
        except TaoError as error:
            finding: Finding = error.findings[0]
            return MediaState((finding.code, finding.what.replace(path, shown(name)), finding.fix, finding.fix_kind))
        return MediaState()

    def _measured(self, path: str) -> VideoFacts:
        """Measure a video and decode the first, middle and last frame that will be sampled, unless that is known."""
        state = _state_of(path)
        known = self._cache.get(path, state)
        facts = probe_video(path) if known is None or known.facts is None else known.facts
        decoded = frozenset[int]() if known is None else known.decoded
        wanted = frames_to_try(facts, self._vision)
        if not decoded.issuperset(wanted):
            decode_frames(path, wanted, num_threads=1)
            self._cache.put(path, state, Probed(facts, decoded.union(wanted)))
        # Thousands of long variable-rate videos would fill the memory with times that nobody asked for.
        return facts if self._vision is not None else replace(facts, uneven_times_s=None)

    def _decode_image(self, path: str) -> None:
        """Decode an image, unless it is known to decode."""
        state = _state_of(path)
        known = self._cache.get(path, state)
        if known is None or known.facts is not None:
            _refuse_undecodable(path)
            self._cache.put(path, state, Probed(None, frozenset({0})))

    def _fault(self, name: str) -> tuple[str, str, str, FixKind] | None:
        if not name or "\0" in name or "://" in name or not is_whole(name):
            return _invalid(f"'{shown(name)}' does not name a file in the media folder")
        real = os.path.realpath(os.path.join(self._root, name))  # noqa: PTH118
        if real != self._root and not real.startswith(self._root.rstrip(os.sep) + os.sep):
            what = f"{shown(name)} ends outside the media folder {self._named}, at {shown(real)}"
            return "DATA_MEDIA_OUTSIDE_ROOT", what, "Copy the file into the media folder and name it there.", FixKind.MANUAL
        if os.path.isfile(real):  # noqa: PTH113
            return None
        if os.path.isdir(real):  # noqa: PTH112
            return _invalid(f"{shown(name)} is a folder")
        return self._missing(name)

    def _missing(self, name: str) -> tuple[str, str, str, FixKind]:
        """Say why there is no file of this name."""
        found = self._near(name)
        if found == os.path.normpath(name):
            what = f"{shown(name)} is a link that leads nowhere, or no regular file"
            return "DATA_MEDIA_MISSING", what, "Put a file there, or leave this record out.", FixKind.MANUAL
        what = f"{shown(name)} does not exist in {self._named}"
        return "DATA_MEDIA_MISSING", what, "Put the file there, or leave this record out.", FixKind.MANUAL

    def _near_state(self, name: str, kind: str) -> MediaState | None:
        """Look at the one file with nearly this name; None when there is no such file."""
        found = None if "\0" in name else self._near(name)
        if found is None or found == os.path.normpath(name) or self._fault(found) is not None:
            return None
        state = self.look(found, kind)
        what = f"{shown(name)} does not exist; {shown(found)} does, and {_difference(name, found)}"
        if state.fault is not None:
            what = f"{shown(name)} does not exist; {shown(found)} does, but it is of no use: {state.fault[1]}"
            return MediaState(
                ("DATA_MEDIA_MISSING", what, "Put the right file there, or leave this record out.", FixKind.MANUAL)
            )
        return MediaState(("DATA_MEDIA_MISSING", what, f'Write "{shown(found)}".', FixKind.EDIT), state.facts, found)

    def _near(self, name: str) -> str | None:
        """Return the one existing name that differs in letter case, in the Unicode form of letters, or in its slashes only."""
        return self._matched(name) or (self._matched(name.replace("\\", "/")) if "\\" in name else None)

    def _matched(self, name: str) -> str | None:
        folder, parts = self._root, []
        for part in Path(name).parts:
            if part not in {".", ""}:
                same = self._names(folder).get(_folded(part), [])
                if len(same) != 1:
                    return None
                parts.append(same[0])
                folder = os.path.join(folder, same[0])  # noqa: PTH118
        return "/".join(parts) or None

    def _names(self, folder: str) -> dict[str, list[str]]:
        if folder not in self._entries:
            names: dict[str, list[str]] = {}
            for entry in _entries(folder):
                names.setdefault(_folded(entry), []).append(entry)
            self._entries[folder] = names
        return self._entries[folder]


def _folded(name: str) -> str:
    """Return what names have in common that differ in letter case, or in how accents are coded (macOS archives)."""
    return unicodedata.normalize("NFC", name).casefold()


def _difference(name: str, found: str) -> str:
    """Say how a name differs from the near one that exists."""
    if "\\" in name and "\\" not in found:
        return "folders are parted by / and not by \\"
    if unicodedata.normalize("NFC", os.path.normpath(name)) == unicodedata.normalize("NFC", found):
        return "they look alike and are coded otherwise (Unicode NFC and NFD)"
    return "names tell small from capital letters"


def frames_to_try(facts: VideoFacts, vision: VisionOptions | None) -> list[int]:
    """Return the first, middle and last frame number that is sampled: of the whole file without options."""
    first, last = 0, facts.num_frames - 1
    indices: Sequence[int] = (first, last // 2, last)
    if vision is not None:
        try:
            first, last = frame_range(facts.num_frames, facts.average_fps, vision)
            count = num_frames(last - first + 1, facts.average_fps, vision)
            indices = uniform_indices(first, last, count)
        except TaoError:  # rule D5: no frames can be sampled, which is told with the other findings about tokens
            pass
    return sorted({indices[0], indices[len(indices) // 2], indices[-1]})


def right_rate(facts: Sequence[VideoFacts | None]) -> float | list[float] | None:
    """Return the video_fps of a record from what was measured of its videos: one number where they agree, else one for each.

    None when one of them was not measured, or when there are none.
    """
    rates = [round(one.average_fps, 6) for one in facts if one is not None]
    if not rates or len(rates) < len(facts):
        return None
    return rates[0] if len(set(rates)) == 1 else rates


def _key(path: Any) -> str:
    return path if isinstance(path, str) else repr(path)


def agrees(rate: float, facts: VideoFacts) -> bool:
    """Tell whether a rate is within 2 % of the measured one or of the header's (the file's nominal rate)."""
    nominal = facts.header_fps or facts.average_fps
    return min(abs(rate - fps) / fps for fps in (facts.average_fps, nominal)) <= RATE_TOLERANCE


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:  # no folder, or one that may not be listed: nothing near is known
        return []


def _state_of(path: str) -> os.stat_result:
    try:
        return os.stat(path)  # noqa: PTH116
    except OSError as error:
        what = f"{path} can't be read: {error.strerror}"
        raise media_fault("DATA_MEDIA_MISSING", path, what, "Put the file there, or leave this record out.") from None


def _refuse_undecodable(path: str) -> None:
    """Refuse an image that is a stand-in for one, or does not decode."""
    from PIL import Image

    try:
        refuse_stand_in(path, os.path.getsize(path))  # noqa: PTH202
        with Image.open(path) as image:
            image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        what = f"{path} does not decode as an image: {error}"
        raise TaoError(Finding("DATA_IMAGE_UNREADABLE", what, fix="Replace the file, or leave this record out.")) from None


def rates_of(fps: Any, num_videos: int) -> list[Any]:
    """Return the rate that a record gives for each of its videos."""
    return fps if isinstance(fps, list) and len(fps) == num_videos else [fps] * num_videos


def _invalid(what: str) -> tuple[str, str, str, FixKind]:
    return "DATA_MEDIA_PATH_INVALID", what, "Name a file by its path inside the media folder.", FixKind.MANUAL
