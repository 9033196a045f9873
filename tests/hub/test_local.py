"""A model's folder on this machine is found without asking the Hub, or what to run is said."""

import shlex
import shutil

import pytest
from hub.staging import FILES, NAME, URI, stage

from tao_runtime.errors import TaoError
from tao_runtime.hub.local import local_folder


def missing(name, environment):
    with pytest.raises(TaoError) as caught:
        local_folder(str(name), environment, "policy.model_name_or_path")
    (finding,) = caught.value.findings
    assert (finding.rule, finding.where.key) == ("H3", "policy.model_name_or_path")
    return finding


def test_a_folder_with_a_config_is_the_model_and_one_without_is_none(anonymous, tmp_path):
    (tmp_path / "model").mkdir()
    for folder in (tmp_path / "model", tmp_path / "nowhere"):
        finding = missing(folder, anonymous)
        assert finding.code == "ACCESS_MODEL_FOLDER_MISSING"
        assert f"{folder} holds no config.json" in finding.what
    (tmp_path / "model" / "config.json").write_text("{}")
    assert local_folder(str(tmp_path / "model"), anonymous) == tmp_path / "model"


def test_a_staged_model_is_found_and_another_is_a_download_away(hub, anonymous):
    finding = missing(URI, anonymous)
    assert finding.code == "ACCESS_MODEL_FOLDER_MISSING"
    assert shlex.split(finding.fix)[:3] == ["hf", "download", NAME]
    hub.add(NAME, FILES)
    staged = stage(anonymous).folder
    asked = len(hub.seen)
    assert local_folder(URI, anonymous) == staged
    assert len(hub.seen) == asked
    missing(f"{URI}@v9", anonymous)
    shutil.rmtree(staged)
    missing(URI, anonymous)
