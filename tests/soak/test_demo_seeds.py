"""The demo's claims hold for other seeds than its own: ten by `make soak`, the first of them in CI."""

import json
import subprocess
import sys


def test_the_demo_holds_for_every_seed(soak, repository, tmp_path):
    seeds = range(1, soak.count(10) + 1)
    runs = []
    for seed in seeds:
        out = tmp_path / f"seed{seed}"
        command = [sys.executable, "scripts/demo/run.py", "--seed", str(seed), "--out", str(out)]
        ended = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
        summary = json.loads((out / "summary.json").read_text()) if (out / "summary.json").exists() else {}
        runs.append({"seed": seed, "exit_code": ended.returncode, **summary})
        print(json.dumps(runs[-1]))
    soak.record("demo_seeds", {"runs": runs})
    assert [run["seed"] for run in runs if run["exit_code"] != 0] == []
