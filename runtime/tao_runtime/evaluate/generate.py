"""Generate answers in batches, in the order of the records, within a bound of host memory.

`tests/evaluate/test_generate.py` shows in float32 that answers do not depend on the batch size. Prompts are padded on the
left, so that every answer starts at the same place.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from tao_runtime.data.loader import collate, model_inputs
from tao_runtime.data.samples import Sample, SampleBuilder
from tao_runtime.errors import Finding, TaoError, Where
from tao_runtime.evaluate.sampling import FirstTokens, GenerationOptions, processors
from tao_runtime.media.annotations import Record
from tao_runtime.models.load import pad_id_of

# A batch is closed before its patches take more than this, whatever its number of questions.
MAX_BATCH_BYTES = 2 << 30

Say = Callable[[str], None]
Prompt = tuple[Record, Sample]


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what the model said to one record.

    Attributes:
        record: the record.
        response: text without special tokens.
        num_tokens: tokens generated, the final one included.
        finish: stop when the model ended the answer, length when `max_tokens` cut it.
        likeliest: the one of a few given answers that the model would rather begin with, None when none were given.
    """

    record: Record
    response: str
    num_tokens: int
    finish: Literal["stop", "length"]
    likeliest: str | None = None


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bound a batch and its preparation.

    Attributes:
        batch_size: most questions answered together.
        num_threads: threads that prepare prompts.
        max_retries: how often a batch is halved when the device's memory does not suffice.
        max_bytes: most bytes of prompts in a batch, and again of prompts prepared ahead; one prompt may be larger.
    """

    batch_size: int
    num_threads: int = 1
    max_retries: int = 0
    max_bytes: int = MAX_BATCH_BYTES


class Answerer:
    """Ask a model.

    Args:
        model: in evaluation mode, on its device.
        builder: makes prompts; its tokenizer reads the answers.
        options: how tokens are chosen.
        limits: sizes.
        choices: answers of a closed set, to note the likeliest of them; see `choices_apart`.
        say: takes a line when the batch is made smaller.

    Attributes:
        findings: what kept records from being asked.
    """

    def __init__(
        self,
        model: Any,
        builder: SampleBuilder,
        options: GenerationOptions,
        limits: BatchLimits,
        *,
        choices: Sequence[str] = (),
        say: Say,
    ) -> None:
        self.findings: list[Finding] = []
        self._model, self._builder, self._options, self._limits, self._say = model, builder, options, limits, say
        self._tokenizer = builder.tokenizer
        self._choices = tuple(choices)
        self._batch_size = limits.batch_size
        self._pad_id = pad_id_of(self._tokenizer)
        self._end_ids = end_ids(model, self._tokenizer)

    def answer(self, records: Iterable[Record]) -> Iterator[list[Answer]]:
        """Yield the answers, a batch at a time, in the order of the records; where one can't be asked there is a finding.

        Raises:
            TaoError: RUN_OUT_OF_MEMORY when the device's memory does not suffice however small the batch.
        """
        batch: list[Prompt] = []
        for prompt in self._prompts(records):
            held = sum(sample.num_bytes for _, sample in batch)
            if batch and (len(batch) >= self._batch_size or held + prompt[1].num_bytes > self._limits.max_bytes):
                yield self._answer_batch(batch, self._limits.max_retries)
                batch = []
            batch.append(prompt)
        if batch:
            yield self._answer_batch(batch, self._limits.max_retries)

    def _prompts(self, records: Iterable[Record]) -> Iterator[Prompt]:
        """Prepare prompts in threads, two ahead for each, fewer where prompts as large as the largest would be too much."""
        limits, largest_bytes = self._limits, 0
        waiting: deque[tuple[Record, Future[Sample]]] = deque()
        remaining = iter(records)
        with ThreadPoolExecutor(limits.num_threads, thread_name_prefix="prompt") as pool:
            while True:
                ahead = max(1, min(2 * limits.num_threads, limits.max_bytes // largest_bytes)) if largest_bytes else 1
                while len(waiting) < ahead and (record := next(remaining, None)) is not None:
                    waiting.append((record, pool.submit(self._builder.prompt, record)))
                if not waiting:
                    return
                record, future = waiting.popleft()
                try:
                    sample = future.result()
                except TaoError as error:
                    self.findings.extend(error.findings)
                    continue
                largest_bytes = max(largest_bytes, sample.num_bytes)
                yield record, sample

    def _answer_batch(self, batch: Sequence[Prompt], retries: int) -> list[Answer]:
        if len(batch) > self._batch_size:
            return [answer for part in _parts(batch, self._batch_size) for answer in self._answer_batch(part, retries)]
        try:
            return self._generate(batch)
        except torch.OutOfMemoryError as error:
            if len(batch) == 1 or retries == 0:
                raise _out_of_memory(len(batch), error) from None
        self._batch_size = (len(batch) + 1) // 2
        torch.cuda.empty_cache()
        self._say(f"batch size: {self._batch_size} (memory did not suffice for {len(batch)})")
        return self._answer_batch(batch, retries - 1)

    def _generate(self, batch: Sequence[Prompt]) -> list[Answer]:
        tensors = collate([sample for _, sample in batch], self._pad_id, side="left")
        inputs = model_inputs(tensors, self._model.device)
        keys = [record.index for record, _ in batch]
        first = FirstTokens([first_token(self._tokenizer, choice) for choice in self._choices]) if self._choices else None
        called = processors(self._options, inputs["input_ids"], inputs["attention_mask"], keys)
        self._model.generation_config = self._config()
        with torch.inference_mode():
            tokens: Tensor = self._model.generate(**inputs, logits_processor=[*([first] if first else []), *called])
        said = tokens[:, inputs["input_ids"].shape[1] :].tolist()
        places = first.places if first is not None and first.places is not None else [None] * len(batch)
        return [self._answer(record, row, place) for (record, _), row, place in zip(batch, said, places, strict=True)]

    def _config(self) -> Any:
        """Return the whole configuration, so that nothing of the model's own (top_p, a temperature) creeps in."""
        from transformers import GenerationConfig

        return GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=self._options.max_tokens,
            do_sample=False,
            num_beams=1,
            use_cache=True,
            eos_token_id=list(self._end_ids),
            pad_token_id=self._pad_id,
        )

    def _answer(self, record: Record, tokens: Sequence[int], choice: int | None) -> Answer:
        end = next((place for place, token in enumerate(tokens) if token in self._end_ids), None)
        said = tokens if end is None else tokens[:end]
        text: str = self._tokenizer.decode(said, skip_special_tokens=True)
        likeliest = None if choice is None else self._choices[choice]
        return Answer(record, text, len(said) + (end is not None), "length" if end is None else "stop", likeliest)


def first_token(tokenizer: Any, text: str) -> int:
    """Return the id that an answer begins with."""
    return int(tokenizer.encode(text, add_special_tokens=False)[0])


def choices_apart(tokenizer: Any, choices: Sequence[str]) -> tuple[str, ...]:
    """Return the answers when there are at least two and their first tokens tell them apart, else none."""
    kept = [choice for choice in choices if choice]
    first = {first_token(tokenizer, choice) for choice in kept}
    return tuple(kept) if len(kept) == len(first) == len(choices) >= 2 else ()


def end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return the ids that end an answer: those of the model's generation config, and the tokenizer's own."""
    own = model.generation_config.eos_token_id if model.generation_config is not None else None
    ids = own if isinstance(own, list) else [own]
    return tuple(dict.fromkeys(int(token) for token in [*ids, tokenizer.eos_token_id] if token is not None))


def choose_device(asked: str, local_rank: int | None) -> tuple[torch.device, str]:
    """Return the device and the reason.

    Args:
        asked: native.device: auto, cpu or cuda.
        local_rank: which GPU of this machine, None for the current one.

    Raises:
        TaoError: HOST_NO_CUDA when cuda was asked for and there is none.
    """
    why = f"native.device is {asked}"
    if asked == "cpu":
        return torch.device("cpu"), why
    if torch.cuda.is_available():
        device = torch.device("cuda", torch.cuda.current_device() if local_rank is None else local_rank)
        return device, f"{why}; {torch.cuda.get_device_name(device)}"
    if asked == "cuda":
        what = "native.device is cuda and torch sees no CUDA device"
        raise TaoError(Finding("HOST_NO_CUDA", what, Where(key="native.device"), fix="--set native.device=auto"))
    return torch.device("cpu"), f"{why} and torch sees no CUDA device"


def device_name(device: torch.device) -> str:
    """Return what a device is called: the GPU's name, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def choose_threads(num_processes: int) -> tuple[int, str]:
    """Return how many threads prepare prompts, and why; decoding leaves Python's lock, so threads do."""
    cores = len(os.sched_getaffinity(0))
    return min(num_processes, cores), f"evaluation.num_processes is {num_processes}, {cores} cores"


def _parts(batch: Sequence[Prompt], size: int) -> Iterator[Sequence[Prompt]]:
    for start in range(0, len(batch), size):
        yield batch[start : start + size]


def _out_of_memory(size: int, error: BaseException) -> TaoError:
    key = "evaluation.batch_size"
    what = f"{size} questions together: {str(error).splitlines()[0]}"
    fix = f"--set {key}={max(1, size // 2)}" if size > 1 else "Lower vision.total_pixels or vision.max_frames."
    return TaoError(Finding("RUN_OUT_OF_MEMORY", what, Where(key=key), fix))
