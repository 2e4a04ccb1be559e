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

        @sl.register("models", "transformer")
        class Other:
            """Not the transformer."""

    assert sl.get("models", "transformer") is sl.models.Transformer


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, sandlab; print([m for m in ('torch', 'numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_one_file_of_a_room_loads_alone() -> None:
    code = "import sys, sandlab.models.transformer; print('sandlab.models.files' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_no_file_of_a_room_hides_a_public_name() -> None:
    for room in ("worlds", "models", "circuits", "learning", "decoding", "lenses", "studies", "lab"):
        package = f"sandlab.{room}"
        modules = registry._modules(package)
        files = {module.__name__.removeprefix(package + ".") for module in modules}
        public = {name for module in modules for name in getattr(module, "__all__", [])}
        assert not files & public
