"""List how runs fail: the words or signs in a log, the cause, and what mends it.

`references/troubleshooting.md` is generated from this table, and diagnosis of a log matches its expressions. The knowledge was
read off cosmos-rl 0.4.7, qwen-vl-utils 0.0.14 and public reports; `source` says which.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """One way to fail.

    Attributes:
        name: short heading.
        signs: regular expressions found in logs; empty when the sign is something else.
        shown: what the reader sees, in words or as the log writes it.
        cause: why it happens.
        remedy: what to change, first the surest.
        codes: error codes of checks that find it before launch; empty when none can.
        keys: spec keys that the remedy names.
        source: where the knowledge comes from.
    """

    name: str
    signs: tuple[str, ...]
    shown: str
    cause: str
    remedy: str
    codes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    source: str = "cosmos-rl 0.4.7"


FAILURES: tuple[Failure, ...] = (
    Failure(
        "CUDA out of memory in training",
        (r"CUDA out of memory", r"torch\.(cuda\.)?OutOfMemoryError"),
        "`CUDA out of memory` in the training loop",
        "Activations of one forward pass, weights and optimizer state do not fit on the device together.",
        "Halve train.train_policy.mini_batch; raise policy.parallelism.dp_shard_size; lower custom.vision.total_pixels; turn "
        "train.fsdp_offload on.",
        keys=(
            "train.train_policy.mini_batch",
            "policy.parallelism.dp_shard_size",
            "custom.vision.total_pixels",
            "train.fsdp_offload",
        ),
        source="cosmos-reason1 40, cosmos-reason2 54",
    ),
    Failure(
        "LoRA evaluation is killed without a traceback",
        (r"exit(ed)?( with)?( code)? (-9|137)", r"oom-?kill", r"^Killed$"),
        "the process ends with `Killed` or exit code 137 and no traceback",
        "Merging the adapter holds two copies of the weights in host memory while frames of a whole batch wait beside them.",
        "Lower evaluation.batch_size to 10, then to 1; lower vision.total_pixels.",
        keys=("evaluation.batch_size", "vision.total_pixels"),
        source="TAO evaluator",
    ),
    Failure(
        "Loss becomes NaN",
        (r"loss[\"']?\s*[:=]\s*nan\b",),
        "`loss: nan`",
        "The learning rate is too high for the recipe, a batch has no answer token left, or fp16 overflows.",
        "Lower train.optm_lr and give train.optm_warmup_epochs; look for samples whose answer is cut off; use bfloat16 for "
        "train.param_dtype.",
        codes=("SPEC_LR_HIGH",),
        keys=("train.optm_lr", "train.optm_warmup_epochs", "train.param_dtype"),
        source="cosmos-rl 317",
    ),
    Failure(
        "Vision features and tokens do not match",
        (r"vision_embeds", r"[Ff]eatures and (image|video|vision) ?tokens do not match", r"tokens and features do not match"),
        "`vision_embeds` of the wrong shape, or `features and tokens do not match`",
        "The sample is longer than the sequence limit, so some placeholder tokens of the video were cut off.",
        "Keep policy.model_max_length at 40960 or more; take fewer frames (custom.vision.fps) or pixels "
        "(custom.vision.total_pixels).",
        codes=("SPEC_MAX_LENGTH_VIDEO",),
        keys=("policy.model_max_length", "custom.vision.fps", "custom.vision.total_pixels"),
        source="cosmos-rl 0.4.7, LlamaFactory 7376",
    ),
    Failure(
        "Batch is not a multiple of the mini-batch",
        (r"AssertionError.*mini_batch", r"mini_batch.*AssertionError"),
        "an `AssertionError` about `mini_batch` at start",
        "train.train_batch_per_replica is split into whole mini-batches.",
        "Set train.train_batch_per_replica to a multiple of train.train_policy.mini_batch.",
        codes=("SPEC_BATCH_NOT_DIVISIBLE",),
        keys=("train.train_batch_per_replica", "train.train_policy.mini_batch"),
    ),
    Failure(
        "Training ends after zero steps",
        (r"'NoneType' object has no attribute 'state_dict'",),
        "`'NoneType' object has no attribute 'state_dict'`; with checkpoints off the run even reports success",
        "A rank has fewer records than one batch; the incomplete batch is dropped and no step is made.",
        "Lower train.train_batch_per_replica to at most the records of a rank, or use fewer data-parallel ranks.",
        codes=("SPEC_ZERO_STEPS",),
        keys=("train.train_batch_per_replica",),
        source="run: 248 records, 8 ranks, batch 32; TAO skill bank 171",
    ),
    Failure(
        "Results do not change with fps or total_pixels",
        (),
        "the same loss and answers after custom.vision.fps, total_pixels, model_max_length, model or annotations changed",
        "The cache of processed samples is found by data set name and train_policy alone, so old tensors are read.",
        "Give train.train_policy.dataset.name a new value, or turn train.train_policy.enable_dataset_cache off.",
        codes=("SPEC_CACHE_SHARED",),
        keys=("train.train_policy.dataset.name", "train.train_policy.enable_dataset_cache"),
        source="run: cosmos-rl 0.4.7",
    ),
    Failure(
        "Gated model: every rank loops until the timeout",
        (r"gated repo", r"GatedRepoError", r"401 Client Error", r"Access to model .* is restricted"),
        "`gated repo` or `401 Client Error`, repeated by all ranks",
        "The licence of the model was not accepted by the owner of the token, or HF_TOKEN does not reach the container.",
        "Accept the licence on the model's page, then pass HF_TOKEN with read permission as a container environment variable.",
        source="cosmos-rl 0.4.7",
    ),
    Failure(
        "'video_fps' while a sample is processed",
        (r"Error processing sample: 'video_fps'", r"KeyError: 'video_fps'"),
        "`Error processing sample: 'video_fps'`",
        "Either the annotation record has no video_fps, or the video is missing, empty, cut off or has no video stream: then "
        "the reader falls back to one that raises this very word.",
        "Run preflight over the whole annotation file: it tells the two causes apart by record, and repair measures video_fps.",
        source="QwenLM/Qwen3-VL 65, QwenLM/Qwen2.5-Omni 390, pytorch/vision 7281",
    ),
    Failure(
        "Host name error on one node, rollout replicas",
        (r"rollout replica", r"[Hh]ostname.*(resolve|not known)", r"Name or service not known"),
        "the launcher asks for rollout replicas and fails on a host name with a single node",
        "train.train_policy.type was lost when the spec was rewritten; the launcher then assumes reinforcement learning.",
        "Write train.train_policy.type: sft; build specs from the template.",
        codes=("SPEC_POLICY_TYPE",),
        keys=("train.train_policy.type",),
    ),
    Failure(
        "fps and nframes together",
        (r"Only accept either `?fps`? (or|and) `?nframes`?", r"BlockingIOError"),
        "`Only accept either fps or nframes`, later `BlockingIOError` and idle workers",
        "Both are set: the reader asserts, the fallback reader fails too, and the loader's workers wait for each other.",
        "Set exactly one of custom.vision.fps and custom.vision.nframes; the other is null.",
        codes=("SPEC_FPS_XOR_NFRAMES",),
        keys=("custom.vision.fps", "custom.vision.nframes"),
        source="qwen-vl-utils 0.0.14",
    ),
    Failure(
        "A CUDA decoder sees zero frames",
        (r"total_frames ?= ?0",),
        "`total_frames=0` from loader workers",
        "The worker was forked after CUDA had started; the decoder cannot use the device there.",
        "Start loader workers by spawn, or decode on the CPU.",
        source="qwen-vl-utils 0.0.14",
    ),
    Failure(
        "No space in shared memory",
        (r"No space left on device.*(/dev/shm|shm)", r"(/dev/shm|shm).*No space left on device", r"unable to .* shared memory"),
        "NCCL or a loader worker: no space left on `/dev/shm`",
        "A container gets 64 MB of shared memory unless told otherwise.",
        "Start the container with --ipc=host or --shm-size=64g; lower train.train_policy.dataloader_prefetch_factor.",
        keys=("train.train_policy.dataloader_prefetch_factor",),
        source="NCCL",
    ),
    Failure(
        "redis-server is missing",
        (r"redis-server.*not found", r"exit(ed)?( with)?( code)? 127"),
        "`redis-server: not found`, exit code 127",
        "The controller of cosmos-rl starts a redis-server; the wheel does not bring one.",
        "Install the redis-server package, or use NVIDIA's image.",
        source="alpamayo 66",
    ),
    Failure(
        "Image tokens do not match in quantisation",
        (r"Mismatch in `?image`? token count",),
        "`Mismatch in image token count` in quantisation",
        "Calibration samples are cut in the middle of an image.",
        "Set calibration_dataset.max_sequence_length to 4096 or more.",
        codes=("SPEC_CALIBRATION_LENGTH",),
        keys=("calibration_dataset.max_sequence_length",),
        source="llmcompressor",
    ),
    Failure(
        "Validation loss is exactly 0.0",
        (r"[Vv]alidation loss:? 0\.0\b",),
        "a validation loss of 0.0",
        "A rank has fewer validation records than validation.batch_size; the incomplete batch is dropped and the sum stays "
        "empty. Otherwise the dropped tail biases the figure low.",
        "Lower validation.batch_size to at most the validation records of a rank.",
        codes=("SPEC_VALIDATION_BATCH",),
        keys=("validation.batch_size",),
    ),
    Failure(
        "Warm-up lasts the whole run",
        (),
        "the learning rate still rises at the last step",
        "A warm-up of 1.0 written with a decimal point was taken as a share of the run instead of steps.",
        "Render specs with `spec build --for cosmos-rl --annotations FILE`, which writes whole steps.",
        codes=("SPEC_WARMUP_FRACTION",),
        source="TAO skill bank 185",
    ),
    Failure(
        "Resume finds no checkpoint, or seems to hang",
        (r"[Nn]o checkpoint found", r"resume.*checkpoint.*(not found|does not exist)"),
        "`no checkpoint found` on resume, or minutes without a step",
        "train.resume names a folder that is gone, or `best` links to a deleted step; or videos of the steps already made are "
        "decoded again before the first new step.",
        "Point train.resume at an existing checkpoints/epoch_N folder, or set it to false.",
        keys=("train.resume",),
        source="cosmos-rl 556, cosmos-rl 233",
    ),
)
