import subprocess
import sys

import pytest

import sandlab as sl
from sandlab import registry


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(sl.BadInput, match="did you mean 'transformer'"):
        sl.get("models", "transfomer")
    with pytest.raises(sl.BadInput, match="did you mean 'worlds'"):
        sl.get("wrolds", "markov")
    with pytest.raises(AttributeError, match="did you mean 'Transformer'"):
        _ = sl.models.Transfromer


def test_every_registered_thing_has_a_summary_and_a_lower_case_name() -> None:
    for kind in registry.KINDS:
        for name in sl.names(kind):
            assert registry.summary(sl.get(kind, name)), f"{kind}/{name} has no docstring"
            assert name == name.lower() and " " not in name and "_" not in name


def test_two_things_cannot_share_a_name() -> None:
    with pytest.raises(sl.BadInput, match="already has a 'transformer'"):

        @sl.register("models")
        class Transformer:
            """Not the transformer."""

    assert sl.get("models", "transformer") is sl.models.Transformer


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, sandlab; print([m for m in ('torch', 'numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_one_file_of_a_room_loads_alone() -> None:
    code = "import sys, sandlab.models.transformer; print('sandlab.models.io' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_registered_name_is_the_python_name_in_kebab_case() -> None:
    assert [registry.kebab(name) for name in ("InContextMarkov", "KHopInduction", "LSTM", "heads_for_lags", "VGB")] == [
        "in-context-markov",
        "k-hop-induction",
        "lstm",
        "heads-for-lags",
        "vgb",
    ]
    for kind in ("worlds", "models", "circuits", "decoders", "lenses"):
        for name in sl.names(kind):
            assert registry.kebab(sl.get(kind, name).__name__) == name


def test_a_study_is_named_like_its_file() -> None:
    for name in registry._study_modules():
        module = sl.get("studies", name).__module__.split(".")
        assert f"{module[2]}/{module[-1]}".replace("_", "-") == name


def test_one_world_loads_few_modules_and_one_study_no_other_study() -> None:
    code = (
        "import sys, sandlab as sl; sl.worlds.Dyck; print(sum(m.startswith('sandlab.') for m in sys.modules))\n"
        "sl.get('studies', 'nce/landscape'); print(*sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, modules = result.stdout.splitlines()
    assert int(count) < 15 and "sandlab.studies.nce.landscape" in modules
    assert not any(f"studies.{chapter}" in modules for chapter in ("dyck", "ngrams", "verifier", "nce.annulus"))


def test_worlds_and_studies_carry_the_tags_of_a_sandbox() -> None:
    assert registry.tags("worlds", "hmm") == registry.Tags("task design")
    assert registry.tags("worlds", "contrastive-pairs").axis == "task design"
    assert registry.tags("studies", "diffusions/ou-kernel").axis == "task design"
    assert registry.tags("worlds", "dyck").axis == "model class"
    assert not registry.tags("worlds", "gaussian-hmm").representative
    for name in sl.names("worlds"):
        found = registry.tags("worlds", name)
        assert found.axis in ("task design", "model class", "learning process", "inference")
        assert found.controllable or found.minimal
