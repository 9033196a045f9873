"""Adapters reach the layers that are named, and what is exported loads in stock peft and transformers with the same answers."""

import json
import subprocess
import sys

import pytest
import torch

from tao_runtime.cli.main import main
from tao_runtime.config.policy import LoraSection
from tao_runtime.errors import TaoError
from tao_runtime.models import adapters
from tao_runtime.models.adapters import add_lora, target_layers
from tao_runtime.models.export import is_adapter, load_for_inference, save_adapter, save_merged
from tao_runtime.models.load import load_model

LANGUAGE = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "gate_proj", "down_proj"]


@pytest.fixture
def adapted(base_dir):
    model = add_lora(load_model(base_dir), LoraSection(r=4, lora_alpha=8, target_modules=LANGUAGE))
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model.eval()


@torch.no_grad()
def logits(model, inputs):
    return model(**inputs).logits


def test_targets_stay_in_their_tower(tiny_model_dir):
    model = load_model(tiny_model_dir, init="random")
    assert len(target_layers(model, ["q_proj", "v_proj"])) == 4
    assert target_layers(model, "all-linear") == target_layers(model, LANGUAGE)
    vision = target_layers(model, ["attn.qkv", "attn.proj"])
    assert len(vision) == 4
    assert all(".visual.blocks." in name for name in vision)


def test_a_target_that_matches_nothing_is_an_error(tiny_model_dir):
    with pytest.raises(TaoError) as caught:
        target_layers(load_model(tiny_model_dir, init="random"), ["q_proj", "qkv_proj"])
    assert caught.value.findings[0].code == "SPEC_LORA_TARGETS"
    assert "qkv_proj" in caught.value.findings[0].what


def test_fewer_adapters_than_layers_that_were_named_are_an_error(tiny_model_dir, monkeypatch):
    lora = LoraSection(target_modules=["q_proj", "v_proj"])
    assert add_lora(load_model(tiny_model_dir, init="random"), lora), "no SPEC_LORA_TARGETS"
    monkeypatch.setattr(adapters, "_shortest_names", lambda *_: ["q_proj"])
    with pytest.raises(TaoError) as caught:
        add_lora(load_model(tiny_model_dir, init="random"), lora)
    assert caught.value.findings[0].code == "SPEC_LORA_TARGETS"
    assert "into 2 layers instead of the 4" in caught.value.findings[0].what


def test_only_adapters_are_trainable(adapted):
    trainable = [name for name, parameter in adapted.named_parameters() if parameter.requires_grad]
    assert len(trainable) == 2 * 7 * 2
    assert all("lora_" in name and "visual" not in name for name in trainable)


def test_options_of_the_spec_reach_peft(tiny_model_dir):
    lora = LoraSection(
        r=4,
        lora_alpha=16,
        target_modules=["q_proj", "v_proj"],
        use_rslora=True,
        modules_to_save=["visual"],
        r_pattern={r"layers\.0\.": 8, "q_proj": 2},
        alpha_pattern={"v_proj": 32.0},
    )
    model = add_lora(load_model(tiny_model_dir, init="random"), lora)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters() if "lora_A" in name}
    ranks = {(name.split(".layers.")[1][0], name.split(".self_attn.")[1][:6]): shape[0] for name, shape in shapes.items()}
    assert ranks == {("0", "q_proj"): 8, ("0", "v_proj"): 8, ("1", "q_proj"): 2, ("1", "v_proj"): 4}
    layer = dict(model.named_modules())["base_model.model.model.language_model.layers.1.self_attn.v_proj"]
    assert layer.scaling["default"] == pytest.approx(32 / 4**0.5)
    assert any("visual" in name and p.requires_grad for name, p in model.named_parameters())


def test_a_new_adapter_changes_no_answer(base_dir, inputs):
    plain = logits(load_model(base_dir), inputs)
    fresh = logits(add_lora(load_model(base_dir), LoraSection(r=4, target_modules=LANGUAGE)).eval(), inputs)
    assert torch.equal(plain, fresh)


def test_adapter_and_base_equal_merged_and_both_differ_from_the_base(adapted, base_dir, inputs, tmp_path):
    expected = logits(adapted, inputs)
    save_adapter(adapted, tmp_path / "adapter", base_dir)
    save_merged(adapted, tmp_path / "merged", base_dir, torch.float32)
    assert torch.equal(logits(adapted, inputs), expected), "writing changed the model"
    torch.testing.assert_close(logits(load_for_inference(tmp_path / "adapter"), inputs), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(logits(load_for_inference(tmp_path / "merged"), inputs), expected, atol=1e-5, rtol=0)
    assert (logits(load_model(base_dir), inputs) - expected).abs().max() > 0.01


def test_stock_libraries_load_both(adapted, base_dir, inputs, tmp_path):
    from peft import PeftModel
    from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

    expected = logits(adapted, inputs)
    save_adapter(adapted, tmp_path / "adapter", base_dir)
    save_merged(adapted, tmp_path / "merged", base_dir, torch.float32)
    base = Qwen3VLForConditionalGeneration.from_pretrained(base_dir, dtype=torch.float32)
    stock = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    torch.testing.assert_close(logits(stock, inputs), expected, atol=1e-6, rtol=0)
    merged, info = Qwen3VLForConditionalGeneration.from_pretrained(
        tmp_path / "merged", dtype=torch.float32, output_loading_info=True
    )
    assert not any(info.values())
    torch.testing.assert_close(logits(merged.eval(), inputs), expected, atol=1e-5, rtol=0)
    assert merged.config.text_config.use_cache is True
    assert AutoTokenizer.from_pretrained(tmp_path / "merged").chat_template
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert sorted(config["target_modules"]) == sorted(LANGUAGE)


def test_fully_tuned_parts_are_merged_too(base_dir, inputs, tmp_path):
    model = add_lora(load_model(base_dir), LoraSection(r=4, target_modules=["q_proj"], modules_to_save=["visual"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "visual" in name and parameter.requires_grad:
                parameter.add_(0.05)
    expected = logits(model.eval(), inputs)
    save_merged(model, tmp_path / "merged", base_dir, torch.float32)
    save_adapter(model, tmp_path / "adapter", base_dir)
    torch.testing.assert_close(logits(load_for_inference(tmp_path / "merged"), inputs), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(logits(load_for_inference(tmp_path / "adapter"), inputs), expected, atol=1e-6, rtol=0)


def test_an_adapter_of_another_model_is_refused(adapted, base_dir, tmp_path):
    from demo.make_model import write_tiny_model

    save_adapter(adapted, tmp_path / "adapter", base_dir)
    with pytest.raises(TaoError) as caught:
        load_for_inference(tmp_path / "adapter", tmp_path / "none")
    assert caught.value.findings[0].code == "RUN_ADAPTER_BASE"
    write_tiny_model(tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = 1
    (tmp_path / "other" / "config.json").write_text(json.dumps(config))
    model = load_model(tmp_path / "other", init="random")
    save_merged(model, tmp_path / "smaller", tmp_path / "other", torch.float32)
    with pytest.raises(TaoError) as caught:
        load_for_inference(tmp_path / "adapter", tmp_path / "smaller")
    assert caught.value.findings[0].code == "RUN_ADAPTER_BASE"


def test_nothing_half_written(adapted, base_dir, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(TaoError) as caught:
        save_adapter(adapted, tmp_path / "there", base_dir)
    assert caught.value.findings[0].code == "USAGE_OUTPUT_UNWRITABLE"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def words_for(tmp_path, *settings):
    spec = tmp_path / "spec.yaml"
    spec.write_text("{}")
    return ["export", "--spec", str(spec), "--json", *(word for setting in settings for word in ("--set", setting))]


def test_the_command_merges_an_adapter(adapted, base_dir, inputs, tmp_path, capsys):
    save_adapter(adapted, tmp_path / "adapter", base_dir)
    settings = (f"model_path={tmp_path / 'adapter'}", "dtype=float32", f"results_dir={tmp_path / 'out'}")
    assert main([*words_for(tmp_path, *settings), "--dry-run"]) == 0
    assert not (tmp_path / "out").exists()
    capsys.readouterr()
    command = [sys.executable, "-m", "tao_runtime.cli.main", *words_for(tmp_path, *settings)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["data"]["folder"] == str(tmp_path / "out")
    expected = logits(adapted, inputs)
    torch.testing.assert_close(logits(load_for_inference(tmp_path / "out"), inputs), expected, atol=1e-5, rtol=0)
    assert not is_adapter(tmp_path / "out")


def test_the_command_names_every_fault_at_once(base_dir, tmp_path, capsys):
    assert main(words_for(tmp_path, f"model_path={base_dir}", "format=adapter", f"results_dir={tmp_path}")) == 2
    document = json.loads(capsys.readouterr().out)
    assert {f["code"] for f in document["findings"]} == {"RUN_NO_ADAPTER", "USAGE_OUTPUT_UNWRITABLE"}


def test_a_folder_below_a_file_can_not_be_exported_to(base_dir, tmp_path, capsys):
    (tmp_path / "file").touch()
    found = []
    for target in (tmp_path / "file" / "out", tmp_path / "out"):
        main(words_for(tmp_path, f"model_path={base_dir}", "format=adapter", f"results_dir={target}"))
        found.append({(f["code"], f["rule"]) for f in json.loads(capsys.readouterr().out)["findings"]})
    assert [("SPEC_OUTPUT_UNWRITABLE", "C13") in codes for codes in found] == [True, False]
