"""Write the manifests by which Claude Code, Codex and Gemini find the bank; one version, one list of skills."""

from __future__ import annotations

from typing import Any

from tao_runtime import __version__

PLUGIN = "tao-skill-bank"
SUMMARY = "Fine-tune, evaluate and check NVIDIA Cosmos video-language models."
OWNER = {"name": "tao-skill-bank maintainers"}


def client_manifests(skill_paths: list[str]) -> dict[str, dict[str, Any]]:
    """Return the manifests by path below the root.

    Args:
        skill_paths: skill folders below the root, sorted.
    """
    listed = [f"./{path}" for path in skill_paths]
    plugin = {
        "name": PLUGIN,
        "version": __version__,
        "description": SUMMARY,
        "author": OWNER,
        "license": "Apache-2.0",
        "skills": listed,
    }
    return {
        ".claude-plugin/plugin.json": plugin,
        ".claude-plugin/marketplace.json": {
            "name": PLUGIN,
            "owner": OWNER,
            "metadata": {"description": SUMMARY, "version": __version__},
            "plugins": [{"name": PLUGIN, "source": "./", "version": __version__, "description": SUMMARY, "skills": listed}],
        },
        ".codex-plugin/plugin.json": {**plugin, "skills": "./skills/"},
        ".agents/plugins/marketplace.json": {
            "name": PLUGIN,
            "interface": {"displayName": "TAO skill bank"},
            "plugins": [
                {
                    "name": PLUGIN,
                    "source": {"source": "local", "path": "./"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Machine learning",
                }
            ],
        },
        "gemini-extension.json": {
            "name": PLUGIN,
            "version": __version__,
            "description": SUMMARY,
            "contextFileName": "AGENTS.md",
        },
    }
