"""Every circuit and every model as a Hugging Face folder that the Auto classes load with the same logits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.base import Model
from sandlab.models.hugging_face import export_hugging_face

transformers = pytest.importorskip("transformers")

sys.path.insert(0, str(Path(__file__).parent))
from circuit_instances import INSTANCES, MODELS, PARTS  # noqa: E402
from model_snippets import MODELS as SNIPPETS  # noqa: E402


def reloaded(model: Model, folder: Path) -> torch.nn.Module:
    export_hugging_face(model, folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def test_every_registered_circuit_is_tried_or_known_to_be_a_part() -> None:
    assert sorted({*INSTANCES, *PARTS}) == sl.names("circuits") and not set(INSTANCES) & set(PARTS)


@pytest.mark.gate(12)
@pytest.mark.parametrize("name", list(INSTANCES))
def test_every_circuit_comes_back_with_its_logits(name: str, tmp_path: Path) -> None:
    model, inputs = INSTANCES[name]()
    assert isinstance(model, Model)
    with torch.no_grad():
        twin = reloaded(model, tmp_path / name)
        torch.testing.assert_close(twin(inputs).logits, model(inputs), rtol=0, atol=1e-5)


def test_a_part_of_circuits_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="takes a model of SandLab, got Network"):
        export_hugging_face(sl.circuits.step_up(), tmp_path)


class Unregistered(sl.models.RNN):
    """A class of this file, which no other process would know."""


def test_a_folder_names_models_of_sandlab_and_of_the_registry_only(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not registered among the models"):
        export_hugging_face(Unregistered(vocab=3, width=4), tmp_path)
    export_hugging_face(INSTANCES["suffix-table"]()[0], tmp_path)
    about = json.loads((tmp_path / "config.json").read_text())
    for foreign in ("os:system", "sandlab.registry:get"):
        (tmp_path / "config.json").write_text(json.dumps({**about, "sandlab_model": foreign}))
        with pytest.raises(BadInput, match="no model of SandLab"):
            transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_architecture_comes_back_and_generates(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS[name]()
    tokens = torch.randint(4, (2, 8))
    with torch.no_grad():
        twin = reloaded(model, tmp_path)
        torch.testing.assert_close(twin(tokens).logits, model(tokens), rtol=0, atol=1e-6)
        loss = twin(tokens, labels=tokens).loss
        expected = torch.nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        torch.testing.assert_close(loss, expected)
        grown = twin.generate(tokens, max_new_tokens=3, do_sample=False)
    assert grown.shape == (2, 11) and torch.equal(grown[:, :8], tokens)


@pytest.mark.gate(6)
@pytest.mark.parametrize("name", sl.names("models"))
def test_every_registered_model_comes_back_with_its_logits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is made and called as its page says."""
    monkeypatch.chdir(tmp_path)
    seen: list[tuple[torch.nn.Module, torch.Tensor]] = []

    def note(module: torch.nn.Module, given: tuple[torch.Tensor, ...], _answer: object) -> None:
        if isinstance(module, Model):
            seen.append((module, given[0]))

    handle = torch.nn.modules.module.register_module_forward_hook(note)
    try:
        exec(compile(SNIPPETS[name], name, "exec", dont_inherit=True), {"sl": sl, "torch": torch})
    finally:
        handle.remove()
    inner = sl.models.EncoderDecoder(vocab=20, source_length=4, target_length=6, width=16, heads=2)
    model, inputs = seen[-1] if seen else (inner, torch.randint(20, (2, 10)))
    assert isinstance(model, sl.get("models", name))
    with torch.no_grad():
        torch.testing.assert_close(reloaded(model, tmp_path / "there")(inputs).logits, model(inputs), rtol=0, atol=1e-5)


def test_letters_become_a_tokenizer_that_reads_and_writes(tmp_path: Path) -> None:
    model = sl.circuits.induction_head(3, 20)
    export_hugging_face(model, tmp_path / "single", letters="abc")
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "single")
    assert reader("cab")["input_ids"] == [2, 0, 1] and reader.decode([2, 0, 1]) == "cab"
    export_hugging_face(model, tmp_path / "words", letters=["push", "pop", "end"])
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "words")
    assert reader("pop end push")["input_ids"] == [1, 2, 0] and reader.decode([1, 2, 0]) == "pop end push"
    with pytest.raises(Exception, match="Missing"):
        reader("pop push stop")
    with pytest.raises(BadInput, match="letters must differ"):
        export_hugging_face(model, tmp_path / "same", letters="aab")


def test_a_text_grows_by_generate_and_by_a_pipeline_and_padding_is_refused(tmp_path: Path) -> None:
    export_hugging_face(sl.circuits.induction_head(3, 20), tmp_path, letters="abc")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokens = reader("abcab", return_tensors="pt")
    assert reader.decode(model.generate(**tokens, max_new_tokens=2, do_sample=False)[0]) == "abcabca"
    write = transformers.pipeline("text-generation", model=model, tokenizer=reader, max_new_tokens=2, do_sample=False)
    assert write("abcab")[0]["generated_text"] == "abcabca"
    with pytest.raises(BadInput, match="without padding"):
        model(tokens["input_ids"], attention_mask=torch.tensor([[0, 1, 1, 1, 1]]))


def test_importing_sandlab_alone_makes_the_folder_loadable_and_stays_light(tmp_path: Path) -> None:
    export_hugging_face(sl.circuits.induction_head(3, 20), tmp_path)
    code = (
        "import sys, sandlab; assert 'transformers' not in sys.modules and 'torch' not in sys.modules\n"
        "from transformers import AutoModelForCausalLM as Auto\n"
        f"print(type(Auto.from_pretrained({str(tmp_path)!r})).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "SandlabForCausalLM", done.stderr


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a model of SandLab"):
        export_hugging_face(torch.nn.Linear(2, 2), tmp_path)  # type: ignore[arg-type]
