"""List every error code once: the word, the static rule it belongs to, and what it means.

`references/error-codes.md` is generated from this table; `tests/contract/test_codes.py` holds the source to it. A code's
first word decides the exit code of a command that ends with it.
"""

from __future__ import annotations

from dataclasses import dataclass

EXIT_OK = 0
EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_SPEC = 3
EXIT_DATA = 4
EXIT_ENVIRONMENT = 5
EXIT_RUN = 6
EXIT_DRIFT = 7
EXIT_REQUEUE = 75
EXIT_INTERRUPTED = 130

_EXIT_BY_FAMILY = {
    "INTERNAL": EXIT_INTERNAL,
    "USAGE": EXIT_USAGE,
    "SPEC": EXIT_SPEC,
    "DATA": EXIT_DATA,
    "SKILL": EXIT_DATA,
    "RESULTS": EXIT_DATA,
    "ENV": EXIT_ENVIRONMENT,
    "ACCESS": EXIT_ENVIRONMENT,
    "HOST": EXIT_ENVIRONMENT,
    "RUN": EXIT_RUN,
    "DRIFT": EXIT_DRIFT,
}


@dataclass(frozen=True, slots=True)
class Code:
    """Say what a code means.

    Attributes:
        summary: one sentence for the reference page.
        rule: number in the table of static rules, None outside it.
    """

    summary: str
    rule: str | None = None


CODES: dict[str, Code] = {
    # The command line
    "INTERNAL_ERROR": Code("A fault of this program; the report names the place."),
    "USAGE_ARGUMENTS": Code("The command line can't be parsed."),
    "USAGE_FILE_UNREADABLE": Code("A file named on the command line is missing or can't be read."),
    "USAGE_OUTPUT_UNWRITABLE": Code("An output path can't be written."),
    "ENV_VARIABLE_INVALID": Code("An environment variable holds what it can't hold."),
    "RUN_INTERRUPTED": Code("The command was interrupted from the keyboard; it ends with 130."),
    # Specs: form
    "USAGE_ACTION_UNKNOWN": Code("The skill has no such action."),
    "USAGE_DIALECT_UNKNOWN": Code("The action can't be rendered for this back end."),
    "SPEC_FILE_INVALID": Code("A spec file is not a YAML or JSON mapping, or names a key twice."),
    "SPEC_OVERRIDE_SYNTAX": Code("An override is not KEY=VALUE."),
    "SPEC_UNKNOWN_KEY": Code("The spec has no such key.", "C14"),
    "SPEC_SECTION": Code("A value was given where a section with keys stands."),
    "SPEC_TYPE": Code("A value has the wrong type; specs are read strictly."),
    "SPEC_RANGE": Code("A value is outside its bounds."),
    "SPEC_CHOICE": Code("A value is none of the choices."),
    "SPEC_COMMENTS_LOST": Code("A spec file could not be changed in place and was written anew, without its comments."),
    "SPEC_RECORD_COUNT_UNKNOWN": Code("A key that is derived from the number of records was rendered without it."),
    # Specs: rules
    "SPEC_REQUIRED_MISSING": Code("A path that only the user knows isn't set."),
    "SPEC_OUTPUT_MISSING": Code("No output folder is set.", "C13"),
    "SPEC_POLICY_TYPE": Code("train_policy.type is not written, or not sft.", "C1"),
    "SPEC_BATCH_NOT_POSITIVE": Code("A batch size is below 1.", "C2"),
    "SPEC_BATCH_NOT_DIVISIBLE": Code("train_batch_per_replica is not a multiple of mini_batch.", "C2"),
    "SPEC_ZERO_STEPS": Code("The data give no optimizer step.", "C3"),
    "SPEC_FPS_XOR_NFRAMES": Code("Not exactly one of fps and number of frames is set.", "C4"),
    "SPEC_COMPILE_DENSE": Code("compile is true for a dense Qwen3-VL on cosmos-rl.", "C5"),
    "SPEC_PARALLEL_DENSE": Code("cp_size or pp_size is not 1 on the dense path of cosmos-rl.", "C6"),
    "SPEC_TP_SIZE_IMPLICIT": Code("tp_size is not written; cosmos-rl's parts assume different values.", "C7"),
    "SPEC_GPU_COUNT": Code("The parallel layout asks for more GPUs than there are.", "C8"),
    "SPEC_RESHARD": Code("fsdp_reshard_after_forward has no meaning in the target dialect.", "C9"),
    "SPEC_LORA_TARGETS": Code("lora.target_modules names no layer, or one that is tuned in full.", "C10"),
    "SPEC_LORA_INIT": Code("init_lora_weights is none of the accepted forms.", "C11"),
    "SPEC_LR_PARTS": Code("A list or table of learning rates doesn't match the model parts.", "C12"),
    "SPEC_MODEL_URI": Code("A hub model is named by a bare id, or by hf_model:// where nothing resolves it.", "C15"),
    "SPEC_WARMUP_FRACTION": Code("A warm-up up to 1.0 written with a decimal point can be read as a share of the run.", "C16"),
    "SPEC_CHECKPOINT_CADENCE": Code("The first periodic checkpoint lies beyond the end of the run.", "C17"),
    "SPEC_EXPORT_WITHOUT_CHECKPOINT": Code("An export is asked for and checkpoints are off.", "C17"),
    "SPEC_VALIDATION_BATCH": Code("A rank has fewer validation records than a validation batch.", "C18"),
    "SPEC_CACHE_SHARED": Code("Training and validation cache into one folder.", "C19"),
    "SPEC_MAX_LENGTH_VIDEO": Code("model_max_length is below 40960 with video on cosmos-rl.", "C21"),
    "SPEC_GRAD_CLIP": Code("Gradients are not clipped.", "C22"),
    "SPEC_LR_HIGH": Code("The learning rate is above the usual range.", "C22"),
    "SPEC_CALIBRATION_LENGTH": Code("Calibration samples are cut below 4096 tokens.", "C24"),
    "SPEC_VISION_LIMITS": Code("Limits of frame size, number or time contradict each other.", "D8"),
    "SPEC_ASYNC_TP": Code("async_tp_enabled needs compile."),
    "SPEC_LORA_BASE_MISSING": Code("An adapter is named without its base model."),
    "SPEC_MODEL_IS_CHECKPOINT": Code("A model path points into a checkpoint instead of at an export."),
    "SPEC_SHARDS_NOT_WHOLE": Code("num_gpus is not a multiple of tp_size."),
    "SPEC_BERTSCORE_MODEL": Code("bertscore is asked for without a model."),
    "SPEC_CALIBRATION_DATA": Code("A calibrated scheme has no calibration records, or two sources."),
    # Training
    "SPEC_WARMUP_BEYOND_RUN": Code("The warm-up is longer than the run."),
    "SPEC_NATIVE_RANKS": Code("The parallel layout and the processes that were started don't fit the native trainer."),
    "SPEC_NATIVE_DTYPE": Code("A precision that the native trainer doesn't train in."),
    "SPEC_NATIVE_IGNORED": Code("A key was set that has no effect on the native trainer."),
    "SPEC_RESUME_MISMATCH": Code("The checkpoint to resume belongs to another model, adapter or data set."),
    "SPEC_RESUME_CHANGED": Code("A value differs from the one that the resumed checkpoint was made with."),
    "HOST_NO_CUDA": Code("CUDA was asked for and there is no CUDA device.", "H2"),
    "RUN_CHECKPOINT_TORN": Code("A checkpoint is incomplete or its bytes have changed."),
    "RUN_MODEL_UNSUPPORTED": Code("A model is not of the Qwen3-VL family."),
    "RUN_MODEL_MISMATCH": Code("A model's weights and its config.json differ."),
    "RUN_NO_ADAPTER": Code("An adapter is asked for where there is none."),
    "RUN_NO_EXPORT": Code("A checkpoint has no export beside it."),
    "RUN_ADAPTER_UNREADABLE": Code("An adapter's file can't be read."),
    "RUN_ADAPTER_BASE": Code("An adapter's base model is missing or is another one."),
    "RUN_CHAT_TEMPLATE": Code("A chat template does not write answers or media as Qwen3-VL does."),
    "RUN_NOTHING_TRAINABLE": Code("The model has no trainable parameter."),
    "RUN_LOSS_NOT_FINITE": Code("The loss or the gradient is NaN or infinite."),
    "RUN_NO_ANSWER_TOKENS": Code("A batch or a validation set has no answer token, so there is no loss."),
    "RUN_OUT_OF_MEMORY": Code("The device's memory did not suffice."),
    "RUN_STORAGE": Code("A file of the run could not be written or read."),
    "RUN_STOPPED": Code("The run was told to stop by a signal; it ends with 75, from the keyboard with 130."),
    # Skills of the bank
    "USAGE_BANK_MISSING": Code("No bank of skills was found."),
    "USAGE_SKILL_UNKNOWN": Code("The bank has no such skill."),
    "SK001": Code("SKILL.md is missing, misnamed, not UTF-8 with LF line ends, or its front matter isn't closed."),
    "SK002": Code("The front matter is not a mapping of the standard's keys, each once."),
    "SK003": Code("A skill's name is not its directory's name, or not lower-case words joined by hyphens."),
    "SK004": Code("A description is not one plain paragraph of a verb phrase and a sentence that starts with Use when."),
    "SK005": Code("Names and descriptions of the bank together are too long to be listed to an agent."),
    "SK006": Code("A compatibility note is empty or too long."),
    "SK007": Code("Metadata are not texts, or the version is not the bank's."),
    "SK008": Code("allowed-tools is not one line of tool names."),
    "SK009": Code("The body of a skill is too long."),
    "SK010": Code("A link or path in a skill leads nowhere or outside the skill, or another skill is named wrongly."),
    "SK011": Code("A reference or script that SKILL.md doesn't name."),
    "SK012": Code("A reference sends its reader to another reference, or is long and has no contents."),
    "SK013": Code("A script's --help is slow, fails, imports torch or uses the network."),
    "SK014": Code("A script waits for input, or accepts an unknown flag."),
    "SK015": Code("A script's --json output is not one document of the command_output schema."),
    "SK016": Code("A command in a skill that the command line doesn't have."),
    "SK017": Code("A spec key, value or default in prose differs from the schema."),
    "SK018": Code("evals.json is malformed, or has fewer than three cases or no negative one."),
    "SK019": Code("A text of a skill looks like a credential."),
    "SK020": Code("A schema, template or skill_info.yaml of a skill is invalid, or template and schema default differ."),
    "SK021": Code("A file holds hidden or bidirectional characters."),
    "SK022": Code("The reference validator of the Agent Skills standard rejects a skill."),
    # Generated files
    "DRIFT_MISSING": Code("A generated file is missing."),
    "DRIFT_STALE": Code("A generated file differs from what the source gives."),
    "DRIFT_EXTRA": Code("A file stands where only generated files belong."),
    # Preflight: what was not looked at, and secrets
    "DATA_NOT_CHECKED": Code("No data set was named, so none was looked at."),
    "SPEC_NOT_CHECKED": Code("No spec was given, so none was judged."),
    "ACCESS_NOT_CHECKED": Code("Access to the model was not tried."),
    "HOST_NOT_CHECKED": Code("The host was not looked at."),
    "ACCESS_SECRET_EXPOSED": Code("A spec or a command line holds a credential.", "H10"),
    # Annotation files
    "DATA_ANNOTATIONS_UNREADABLE": Code("An annotation file can't be opened.", "D1"),
    "DATA_ANNOTATIONS_EMPTY": Code("An annotation file holds no records.", "D1"),
    "DATA_ANNOTATIONS_SYNTAX": Code(
        "An annotation file is not a JSON array, JSON lines or Parquet, or part of it does not parse.", "D1"
    ),
    "DATA_ANNOTATIONS_ENCODING": Code("An annotation file is not UTF-8.", "D1"),
    "DATA_ANNOTATIONS_EXTENSION": Code("The name of an annotation file ends unlike its content.", "D1"),
    "DATA_RECORD_NOT_OBJECT": Code("A record is not an object.", "D1"),
    "DATA_TURNS_MISSING": Code("A record has no conversation, or not both a question and an answer.", "D2"),
    "DATA_TURNS_ROLES": Code("The turns of a record are not human, then gpt.", "D2"),
    "DATA_TURN_NOT_TEXT": Code("A turn's value is not text.", "D2"),
    "DATA_ANSWER_BLANK": Code("A record's answer is blank.", "D2"),
    "DATA_TURNS_EXTRA": Code("A record has more than two turns; Cosmos-RL uses the first two only.", "D2"),
    "DATA_SPLIT_OVERLAP": Code("Training and validation share a media file or a record.", "D9"),
    "DATA_ANSWERS_CONTRADICT": Code("One question about the same media has different answers.", "D9"),
    "DATA_LITERAL_TOKENS": Code("A text contains vision or chat tokens.", "D10"),
    "DATA_TAG_COUNT": Code("The number of media tags differs from the number of media.", "D11"),
    "DATA_TAG_MISSING": Code("A record has media but no tag for them.", "D11"),
    "DATA_VIDEO_FPS_MISSING": Code("A record with video has no video_fps.", "D12"),
    "DATA_VIDEO_FPS_INVALID": Code("video_fps is not a finite number above 0, or not one for each video.", "D12"),
    "DATA_VIDEO_FPS_CONTRADICTS": Code("video_fps differs from the file by more than 2 %.", "D12"),
    "DATA_ANSWERS_DRIFT": Code("One answer is spelled in several ways.", "D13"),
    "DATA_ID_DUPLICATE": Code("Two records have the same id.", "D13"),
    "DATA_OPTIONS_DUPLICATE": Code("A question offers the same option twice.", "D13"),
    "DATA_ANSWERS_IMBALANCED": Code("The most frequent answer is more than nine times as frequent as the rarest.", "D13"),
    "DATA_FORM_CANNOT_HOLD": Code("A form of annotations has no place for part of a record."),
    "DATA_FORM_EDITED": Code("A converted record was edited, so that its note for the way back no longer fits."),
    "DATA_VALUE_NOT_JSON": Code("A record holds a value that JSON has not."),
    "DATA_SPLIT_IMPOSSIBLE": Code("A set can't be split as asked without a video on two sides."),
    "DATA_SPLIT_UNEVEN": Code("A side of a split differs from what was asked, because records of one video stay together."),
    "DATA_SPLIT_LEFTOVER": Code("The folder of a split holds a side of an earlier one."),
    "DATA_MERGE_FORMS": Code("Sets to be merged are in different forms."),
    "DATA_RECORD_REPEATED": Code("A record stands in the sets that are merged more than once."),
    "DATA_SELECTION_EMPTY": Code("No record meets what was asked for."),
    "DATA_SELECTION_SHORT": Code("More records are to be drawn than there are."),
    "DATA_SELECTION_UNKNOWN_IDS": Code("Records were asked for by ids that no record has."),
    # Media files
    "DATA_MEDIA_FOLDER_MISSING": Code("The media folder does not exist.", "D3"),
    "DATA_MEDIA_MISSING": Code("A media file named by a record does not exist or can't be read.", "D3"),
    "DATA_MEDIA_OUTSIDE_ROOT": Code("A media path ends outside the media folder.", "D3"),
    "DATA_MEDIA_EMPTY": Code("A media file has no bytes.", "D3"),
    "DATA_MEDIA_LFS_POINTER": Code("A media file is a Git LFS pointer instead of the media.", "D3"),
    "DATA_MEDIA_NOT_CHECKED": Code("Media files were not looked at.", "D3"),
    "DATA_MEDIA_PATH_INVALID": Code("A media path is not a text that can name a file.", "D3"),
    "DATA_IMAGE_UNREADABLE": Code("An image file can't be decoded.", "D4"),
    "DATA_SAMPLE_TOO_LONG": Code("A record has more tokens than the model may read.", "D6"),
    "DATA_VIDEO_UNREADABLE": Code("A video file can't be decoded.", "D4"),
    "DATA_VIDEO_NO_STREAM": Code("A file named as video holds no video stream.", "D4"),
    "DATA_VIDEO_NO_RATE": Code("A video has no frame rate.", "D4"),
    "DATA_VIDEO_ONE_FRAME": Code("A video has fewer than two frames.", "D4"),
    "DATA_VIDEO_FRAMES_LOST": Code("A frame that the file claims does not decode.", "D4"),
    "DATA_FRAME_OUT_OF_RANGE": Code("A frame number beyond the end of the video was asked for."),
    "DATA_TOO_FEW_FRAMES": Code("The sampling keys ask for more frames than the video has, or for fewer than two.", "D5"),
    "DATA_TIME_RANGE": Code("No two frames lie between video_start and video_end.", "D5"),
    "DATA_ASPECT_RATIO": Code("A frame is more than 200 times as long as it is wide.", "D8"),
    "DATA_PIXEL_BOUNDS": Code("max_pixels is less than min_pixels.", "D8"),
    "DATA_RESIZED_PAIR": Code("Only one of resized_height and resized_width is set.", "D8"),
    "DATA_PIXEL_FLOOR": Code("min_pixels keeps the frames of a video larger than total_pixels allows.", "D7"),
    "DATA_ANSWER_CUT": Code("A record's answer begins beyond the tokens that are kept, so nothing is taught.", "D14"),
    "DATA_TOKENS_NOT_CHECKED": Code("The tokens of records were not counted.", "D6"),
    "DATA_VIDEO_VARIABLE_RATE": Code("The frames of a video are unevenly spaced.", "D15"),
    "DATA_VIDEO_ROTATED": Code("A video is turned by metadata, which some readers ignore.", "D15"),
    "DATA_VIDEO_HEADER_COUNT": Code("A video's header claims more frames than decode.", "D15"),
    "DATA_VIDEO_AUDIO_FIRST": Code("Audio is stream 0 of a video file, which some readers take for the video.", "D15"),
    # Models of the Hub
    "SPEC_OUTPUT_UNWRITABLE": Code("An output folder can't be made or written.", "C13"),
    "SPEC_CACHE_STALE": Code("cosmos-rl would read samples that were cached from something else.", "C20"),
    "SPEC_MODEL_UNSTAGED": Code("A rendered file names a Hub model that its back end does not resolve.", "C15"),
    "SPEC_MODEL_NAME": Code("A model's name is neither a folder nor hf_model://OWNER/NAME[@REVISION].", "C15"),
    "ACCESS_HF_OFFLINE": Code("HF_HUB_OFFLINE is set, so access to the Hub was not checked.", "H3"),
    "ACCESS_HF_TOKEN_MISSING": Code("The model is gated and there is no Hugging Face token.", "H3"),
    "ACCESS_HF_TOKEN_INVALID": Code("The Hub rejects the Hugging Face token.", "H3"),
    "ACCESS_HF_TOKEN_SCOPE": Code("The Hugging Face token may not read gated repositories.", "H3"),
    "ACCESS_HF_GATED": Code("The licence of the model is not accepted by the token's account.", "H3"),
    "ACCESS_HF_REQUEST_PENDING": Code("Access to the model was asked for and is not granted yet.", "H3"),
    "ACCESS_HF_FORBIDDEN": Code("The Hub forbids access to the model.", "H3"),
    "ACCESS_HF_REPO_NOT_FOUND": Code("The model repository does not exist, or is private.", "H3"),
    "ACCESS_HF_REVISION_NOT_FOUND": Code("The model repository has no such revision.", "H3"),
    "ACCESS_HF_FILES_MISSING": Code("The model repository lacks files that loading needs.", "H3"),
    "ACCESS_HF_RATE_LIMITED": Code("The Hub limits the rate of requests.", "H3"),
    "ACCESS_HF_SERVER_ERROR": Code("The Hub answers with a server error.", "H3"),
    "ACCESS_HF_SLOW": Code("The Hub does not answer within the time limit.", "H3"),
    "ACCESS_HF_NAME_UNRESOLVED": Code("The Hub's host name can't be resolved.", "H3"),
    "ACCESS_HF_REFUSED": Code("The Hub's address refuses connections.", "H3"),
    "ACCESS_HF_UNREACHABLE": Code("The connection to the Hub fails.", "H3"),
    "ACCESS_HF_NOT_A_HUB": Code("What answers at the Hub's address is no Hub.", "H3"),
    "ACCESS_HF_NOT_ASKED": Code("A local snapshot is used because the Hub is down.", "H3"),
    "ACCESS_MODEL_FOLDER_MISSING": Code("A model folder does not exist.", "H3"),
    "ACCESS_MODEL_INCOMPLETE": Code("A model on disk lacks files that loading needs.", "H3"),
    "ACCESS_MODEL_DAMAGED": Code("A model file differs from what the Hub, or its own header, says of it.", "H3"),
    "ACCESS_MODEL_LFS_POINTER": Code("A model file is a Git LFS pointer instead of the content.", "H3"),
    "ACCESS_MODEL_TOKENIZER": Code("The tokenizer beside a model gives vision tokens other ids than the model's config.", "H3"),
    "ACCESS_CACHE_UNWRITABLE": Code("The Hub's cache can't be written."),
    "HOST_DISK_MODEL": Code("The disk has no room for the model's files.", "H4"),
    # The place of a launch
    "HOST_DOCKER_MISSING": Code("There is no docker command.", "H1"),
    "HOST_DOCKER_DOWN": Code("No container engine answers at its address.", "H1"),
    "HOST_DOCKER_SILENT": Code("The container engine does not answer within the time limit.", "H1"),
    "HOST_DOCKER_PERMISSION": Code("This user may not use the container engine.", "H1"),
    "HOST_DOCKER_GPU_RUNTIME": Code("The container engine can't hand out GPUs.", "H1"),
    "HOST_IMAGE_MISSING": Code("The container engine does not have the image yet.", "H1"),
    "HOST_REDIS_MISSING": Code("The redis-server that cosmos-rl starts is missing.", "H1"),
    "HOST_SLURM_MISSING": Code("SLURM's commands are not on this machine.", "H1"),
    "HOST_SLURM_DOWN": Code("SLURM's controller does not answer.", "H1"),
    "HOST_SLURM_PARTITION": Code("The cluster has no such partition.", "H1"),
    "HOST_SLURM_PARTITION_DOWN": Code("The partition starts no jobs.", "H1"),
    "HOST_SLURM_LIMIT": Code("The spec takes more nodes, or more GPUs on a node, than the partition has or allows.", "H1"),
    "HOST_SLURM_NODES_DOWN": Code("Too few of the nodes that fit are usable now.", "H1"),
    "HOST_SLURM_ACCOUNT": Code("SLURM takes no job of this account on this partition.", "H1"),
    "HOST_SLURM_REFUSED": Code("SLURM would refuse a job of this shape.", "H1"),
    "HOST_PATH_NOT_SHARED": Code("A path of the spec is not seen from a compute node.", "H1"),
    "HOST_KUBERNETES_MISSING": Code("The Kubernetes client is not installed.", "H1"),
    "HOST_KUBERNETES_CONFIG": Code("There is no usable kubectl configuration.", "H1"),
    "HOST_KUBERNETES_DOWN": Code("The cluster's API does not answer.", "H1"),
    "HOST_KUBERNETES_REFUSED": Code("The cluster rejects the credentials.", "H1"),
    "HOST_KUBERNETES_VERSION": Code("The cluster is older than the jobs need.", "H1"),
    "HOST_KUBERNETES_NAMESPACE": Code("The cluster has no such namespace, or deletes it.", "H1"),
    "HOST_KUBERNETES_GPUS": Code("The cluster has fewer fitting GPU nodes than the spec takes.", "H1"),
    "HOST_KUBERNETES_NODES_DOWN": Code("Too few of the nodes that fit take pods now.", "H1"),
    "HOST_GPU_VISIBLE": Code("CUDA_VISIBLE_DEVICES names what is not there, or a device twice.", "H2"),
    "HOST_GPU_COUNT": Code("The spec takes more GPUs than are visible.", "H2"),
    "HOST_GPU_DRIVER": Code("The NVIDIA driver is older than the back end needs.", "H2"),
    "HOST_GPU_ARCHITECTURE": Code("The back end has no kernels for a GPU.", "H2"),
    "HOST_MEMORY_SMALL": Code("Host memory does not hold what the loader prepares ahead.", "H5"),
    "HOST_SHM_SMALL": Code("Shared memory (/dev/shm) does not hold what the loader's processes hand over.", "H5"),
    "HOST_TORCH_MISSING": Code("torch is not installed where the launch runs.", "H7"),
    "HOST_TORCH_CPU_BUILD": Code("torch is a CPU build on a machine with GPUs.", "H7"),
    "HOST_ATTENTION_SLOW": Code("Attention falls back to the plain implementation.", "H7"),
    "HOST_FLASH_ATTENTION_MISSING": Code("cosmos-rl asks for FlashAttention, which is not installed.", "H7"),
    "HOST_DECODER_FALLBACK": Code("Videos would be read by the fallback decoder.", "H7"),
    "HOST_LOCKS_FAIL": Code("Locks do not work in a folder that several processes write to.", "H8"),
    "HOST_LOCKS_LOCAL": Code("Locks of a network file system hold on one host only.", "H8"),
    "HOST_PORT_TAKEN": Code("A port that the launch needs is in use.", "H9"),
    # Evaluating
    "SPEC_NATIVE_UNSUPPORTED": Code("A key asks for what this runtime does not do."),
    "SPEC_ADAPTER_SWITCH": Code("model.enable_lora says otherwise than the model folder."),
    "SPEC_SHARD": Code("The shard to answer is none of the shards there are."),
    "RUN_SAVED_ANSWERS_STALE": Code("Saved answers were given under other settings and are not used."),
    # Results of an evaluation
    "RESULTS_MISSING": Code("A path leads to no results.json."),
    "RESULTS_UNREADABLE": Code("A results file can't be read."),
    "RESULTS_SYNTAX": Code("Part of a results file does not parse."),
    "RESULTS_NOT_ARRAY": Code("A results file is not an array of rows."),
    "RESULTS_TOTALS_ONLY": Code("A results file holds totals instead of answers."),
    "RESULTS_EMPTY": Code("A results file holds no rows."),
    "RESULTS_ROW_INVALID": Code("A row of a results file can't be judged."),
    "RESULTS_VALUE_NOT_TEXT": Code("A value of a results row is not a text."),
    "RESULTS_TRUTH_UNREADABLE": Code("The chosen policy can't read a true answer."),
    "RESULTS_ROW_DUPLICATE": Code("Two rows answer the same question about the same media."),
    "RESULTS_ID_UNKNOWN": Code("A row belongs to no record of the annotations."),
    "RESULTS_RECORDS_UNANSWERED": Code("Records of the annotations have no row in the results."),
    "RESULTS_SUMMARY_INVALID": Code("A metrics_summary.json can't be read."),
    "RESULTS_GAPS_INVALID": Code("A file is not the parquet of `tao-runtime gaps`."),
    "RESULTS_EVENTS_MISSING": Code("A training folder holds no events.jsonl."),
    "RESULTS_NO_PICTURE": Code("Failures are shown without their frames."),
    "RESULTS_NO_FAILURES": Code("Every row of the results is right."),
    "RESULTS_MEDIA_MISSING": Code("The media file of a failure does not exist."),
}


def exit_code_of(code: str) -> int:
    """Return the process exit code for an error code, by its first word (`SK…` checks belong to SKILL).

    Raises:
        KeyError: when the code's family is unknown.
    """
    family = "SKILL" if code.startswith("SK0") else code.partition("_")[0]
    return _EXIT_BY_FAMILY[family]
