"""Hand out samples in the order of the run, prepared ahead by threads.

Threads, not processes: decoding and tokenizing leave Python's lock, nothing has to be copied, and no fork meets a CUDA
context. What a thread prepares depends on the record alone, so the number of threads changes no figure.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from tao_runtime.data.loader import epoch_order
from tao_runtime.plan.host import MAX_CACHE_BYTES
from tao_runtime.plan.steps import StepPlan

SampleT = TypeVar("SampleT")


def step_indices(plan: StepPlan, seed: int, first_step: int, rank: int = 0) -> Iterator[int]:
    """Yield the record indices of one rank, step after step, `batch_per_rank` a step.

    Every epoch has an order of its own. Ranks take turns in it; the order is filled up from its beginning so that all ranks
    have equally many, and the incomplete last batch is left out, as `StepPlan.steps_per_epoch` counts.

    Args:
        plan: schedule of the run.
        seed: seed of the orders.
        first_step: 1-based step to begin with; nothing before it is prepared.
        rank: data-parallel rank.
    """
    records_per_epoch = plan.steps_per_epoch * plan.batch_per_rank
    for step in range(first_step, plan.total_steps + 1):
        epoch, step_in_epoch = divmod(step - 1, plan.steps_per_epoch)
        if step == first_step or step_in_epoch == 0:
            order = [int(index) for index in epoch_order(plan.num_train_records, seed, epoch)]
            padded = order + order[: -len(order) % plan.dp_size]
            of_rank = padded[rank :: plan.dp_size][:records_per_epoch]
        start = step_in_epoch * plan.batch_per_rank
        yield from of_rank[start : start + plan.batch_per_rank]


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """Say how samples are prepared.

    Attributes:
        num_threads: threads that prepare; 0 prepares when a sample is asked for.
        num_ahead: samples prepared before they are asked for.
        cache_bytes: host memory for decoded frames, kept for later epochs.
    """

    num_threads: int
    num_ahead: int
    cache_bytes: int


class SampleStream(Generic[SampleT]):
    """Prepare the records of an index sequence and hand them out in that order.

    Args:
        build: makes a sample from a record index; called from several threads.
        options: threads and depth.
    """

    def __init__(self, build: Callable[[int], SampleT], options: FeedOptions) -> None:
        self._build, self._options = build, options
        self._pool = ThreadPoolExecutor(options.num_threads, thread_name_prefix="sample") if options.num_threads else None

    def batches(self, indices: Iterable[int], batch: int) -> Iterator[list[SampleT]]:
        """Yield lists of `batch` samples; the last may be shorter.

        Raises:
            TaoError: what `build` raised, at the place of its record.
        """
        ahead: deque[Future[SampleT]] = deque()
        remaining = iter(indices)
        while True:
            samples = []
            for _ in range(batch):
                self._fill(ahead, remaining)
                if not ahead:
                    break
                samples.append(ahead.popleft().result())
            if samples:
                yield samples
            if len(samples) < batch:
                return

    def close(self) -> None:
        """Stop the threads; what they have begun is finished, what waits is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _fill(self, ahead: deque[Future[SampleT]], remaining: Iterator[int]) -> None:
        depth = max(1, self._options.num_ahead) if self._pool else 1
        while len(ahead) < depth:
            index = next(remaining, None)
            if index is None:
                return
            ahead.append(self._submit(index))

    def _submit(self, index: int) -> Future[SampleT]:
        if self._pool is not None:
            return self._pool.submit(self._build, index)
        done: Future[SampleT] = Future()
        done.set_result(self._build(index))
        return done


def choose_feed(num_workers: int, prefetch_factor: int) -> tuple[FeedOptions, str]:
    """Choose threads, depth and memory from the spec's loader keys and this machine.

    Args:
        num_workers: train.train_policy.dataloader_num_workers.
        prefetch_factor: samples that each worker prepares ahead.

    Returns:
        The options and the reason for them.
    """
    cores = len(os.sched_getaffinity(0))
    threads = min(num_workers, cores)
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cache = min(MAX_CACHE_BYTES, available // 4)
    options = FeedOptions(threads, threads * prefetch_factor, cache)
    return options, (
        f"{num_workers} workers asked for, {cores} cores; {prefetch_factor} samples ahead for each; "
        f"{cache / 2**20:.0f} MiB keep decoded frames for later epochs (a quarter of free memory, at most 2 GiB)"
    )
