"""All mutants of the rules by `make soak`, a tenth in CI: each is killed by a row of its code, or listed with a reason."""

import time
from collections import Counter

from mutants.equivalent import EQUIVALENT
from mutants.running import alive, run_mutants

FOLDERS = ["dataset", "media", "hub", "preflight", "plan", "spec", "config", "cli", "data", "models", "train", "evaluate"]


def test_every_mutant_of_a_rule_is_killed_by_a_row_of_its_code(soak, tmp_path):
    started = time.monotonic()
    result = run_mutants(tmp_path, FOLDERS, share="1/1" if soak.in_full else "1/10")
    living = alive(result)
    of_package = Counter(fate["mutant"].split()[2].partition("/")[0] for fate in result["fates"])
    figures = {
        "mutants": len(result["fates"]),
        "killed": sum(fate["killed_by"] is not None for fate in result["fates"]),
        "by_package": dict(sorted(of_package.items())),
        "codes": len({fate["mutant"].split()[0] for fate in result["fates"]}),
        "rows": result["rows"],
        "rows_that_fail_unchanged": result["rows_that_fail_unchanged"],
        "equivalent": {name: EQUIVALENT[name] for name in living if name in EQUIVALENT},
        "survivors": [name for name in living if name not in EQUIVALENT],
        "seconds": round(time.monotonic() - started),
    }
    soak.record("mutation", figures)
    assert figures["rows_that_fail_unchanged"] == []
    assert figures["survivors"] == []
