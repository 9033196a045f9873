"""A record's mends: what they change, what they leave, and that lint finds the fault gone where it said it can be mended."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tao_runtime.dataset.collector import Collector
from tao_runtime.dataset.lint_fields import FieldChecks
from tao_runtime.dataset.repair_record import (
    answer_change,
    changed,
    number_changes,
    role_changes,
    tag_changes,
    token_changes,
    turn_split,
    without_tokens,
)
from tao_runtime.errors import FixKind

HUMAN, GPT = {"from": "human", "value": "<video>\nWhich way?"}, {"from": "gpt", "value": "Left"}


def record(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "r0", "video": "a.mp4", "conversations": list(turns) or [HUMAN, GPT], "video_fps": 25.0, **more}


def asked(question: Any, answer: Any = "Left", **more: Any) -> dict[str, Any]:
    return record({"from": "human", "value": question}, {"from": "gpt", "value": answer}, **more)


def texts(raw: dict[str, Any]) -> list[Any]:
    return [turn["value"] for turn in raw["conversations"]]


@pytest.mark.parametrize(
    ("question", "media", "wanted"),
    [
        ("<video>\n<video>\nWhat?", {}, "<video>\nWhat?"),
        ("What?", {}, "<video>\nWhat?"),
        ("<video> a <video> b <video>", {}, "<video> a b "),
        ("<image>\nWhat?", {}, "<video>\nWhat?"),
        ("<video>\nWhat?", {"video": ["a.mp4", "b.mp4"]}, "<video>\n<video>\nWhat?"),
        ("<video>\nWhat?", {"image": "a.png"}, "<image>\n<video>\nWhat?"),
    ],
)
def test_tags_are_made_to_fit_the_media(question, media, wanted):
    raw = asked(question, **media)
    before = copy.deepcopy(raw)
    assert texts(changed(raw, tag_changes(raw)))[0] == wanted
    assert raw == before


def test_tags_without_media_are_left_to_a_person():
    raw = asked("<video>\nWhat?")
    del raw["video"]
    assert tag_changes(raw) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Describe <|video_pad|> please", "Describe please"),
        ("<video>\n<|im_end|>\nQ?", "<video>\nQ?"),
        ("a<|im_end|>b", "ab"),
        ("<|im_<|im_end|>start|>x", "x"),
        ("a <b> < c |>", "a <b> < c |>"),
    ],
)
def test_tokens_go_and_words_stay_apart(text, wanted):
    assert without_tokens(text) == wanted


def test_an_answer_of_nothing_but_tokens_is_left():
    assert token_changes(asked("<video>\nQ?", "<|endoftext|>")) == []


def test_an_answer_before_its_question_changes_places_with_it():
    raw = record(GPT, HUMAN)
    assert changed(raw, role_changes(raw))["conversations"] == [HUMAN, GPT]


def test_where_the_tag_shows_which_turn_is_the_question_the_names_are_exchanged():
    raw = record({"from": "gpt", "value": "<video>\nWhich way?"}, {"from": "human", "value": "Left"})
    assert changed(raw, role_changes(raw))["conversations"] == [HUMAN, GPT]
    assert role_changes(record({"from": "gpt", "value": "Hello"}, HUMAN, GPT)) == []


@pytest.mark.parametrize(("value", "wanted"), [(3, "3"), (2.50, "2.5"), (10**30, str(10**30))])
def test_a_number_is_written_as_text(value, wanted):
    raw = asked("<video>\nHow many?", value)
    assert texts(changed(raw, number_changes(raw)))[1] == wanted


@pytest.mark.parametrize("value", [True, None, ["x"], float("inf")])
def test_what_is_no_number_is_left(value):
    assert number_changes(asked("<video>\nHow many?", value)) == []


def test_further_turns_become_records_with_the_same_media():
    more = [{"from": "human", "value": "And then?"}, {"from": "gpt", "value": "Right"}]
    raw = record(HUMAN, GPT, *more, note=1)
    split = turn_split(raw)
    assert split is not None
    changes, extra = split
    assert changed(raw, changes) == record(note=1)
    assert extra == [record({"from": "human", "value": "<video>\nAnd then?"}, more[1], note=1)]


@pytest.mark.parametrize(
    "turns",
    [[HUMAN], [HUMAN, HUMAN], [GPT, HUMAN], [HUMAN, {"from": "gpt", "value": " "}], [{"from": "human", "value": "?"}, 3]],
)
def test_turns_that_do_not_pair_are_left(turns):
    assert turn_split(record(HUMAN, GPT, *turns)) is None


def test_messages_keep_their_system_text_and_parts():
    system = {"role": "system", "content": "Be brief."}
    question = {"role": "user", "content": [{"type": "text", "text": "<|im_start|>Which?"}]}
    answer = {"role": "assistant", "content": "Left"}
    raw = {"video": "a.mp4", "messages": [system, question, answer, {"role": "user", "content": "And?"}, answer]}
    raw = changed(raw, token_changes(raw))
    raw = changed(raw, tag_changes(raw))
    assert raw["messages"][1]["content"] == [{"type": "text", "text": "<video>\nWhich?"}]
    split = turn_split(raw)
    assert split is not None
    assert split[1][0]["messages"] == [system, {"role": "user", "content": "<video>\nAnd?"}, answer]


def test_an_answer_takes_the_usual_spelling():
    raw = asked("<video>\nQ?", "yes ")
    assert texts(changed(raw, answer_change(raw, {"yes": "Yes."})))[1] == "Yes."
    assert answer_change(raw, {"no": "No"}) == []


TEXTS = st.lists(
    st.sampled_from(["<video>", "\n", "<image>", "<|im_end|>", "<|vision_start|>", " ", "yes", "<|im", "_end|>", "é"]),
    max_size=6,
).map("".join)
VALUES = TEXTS | st.sampled_from([3, 2.5, True, None, float("inf"), []])
ROLES = st.sampled_from(["human", "gpt", "user", "assistant", "system", None])
MEDIA = st.sampled_from(["a.mp4", ["a.mp4", "b.mp4"], [], None])
LLAVA = st.lists(st.fixed_dictionaries({"from": ROLES, "value": VALUES}), max_size=6)
PARTS = st.lists(st.fixed_dictionaries({"text": TEXTS}) | st.just({"type": "video", "video": "c.mp4"}), max_size=3)
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": VALUES | PARTS}), max_size=6)
RECORDS = st.fixed_dictionaries(
    {"video_fps": st.just(25.0)}, optional={"video": MEDIA, "image": MEDIA, "conversations": LLAVA, "messages": MESSAGES}
)
MENDS = {
    "DATA_TURN_NOT_TEXT": number_changes,
    "DATA_TURNS_ROLES": role_changes,
    "DATA_LITERAL_TOKENS": token_changes,
    "DATA_TAG_COUNT": tag_changes,
    "DATA_TAG_MISSING": tag_changes,
    "DATA_TURNS_EXTRA": lambda raw: (turn_split(raw) or ([], []))[0],
}


def found(raw: dict[str, Any]) -> dict[str, list[FixKind]]:
    out = Collector("a.json")
    FieldChecks(out).check_fully(0, raw)
    kinds: dict[str, list[FixKind]] = {}
    for finding in out.findings:
        kinds.setdefault(finding.code, []).append(finding.fix_kind)
    return kinds


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(raw=RECORDS)
def test_what_lint_calls_mendable_is_gone_after_the_mend_and_nothing_new_is_there(raw):
    before = found(raw)
    for code, kinds in before.items():
        if code in MENDS and FixKind.EDIT in kinds:
            mended = changed(raw, MENDS[code](raw))
            after = found(mended)
            assert FixKind.EDIT not in after.get(code, []), (raw, mended)
            assert after.keys() <= before.keys(), (raw, mended)
            assert MENDS[code](mended) == []
