"""Check, build, run and judge fine-tuning jobs for NVIDIA Cosmos video-language models."""

__version__ = "0.1.0"
