"""`sandlab export`, `sandlab eval`: take a model elsewhere, or measure it on a world."""

from __future__ import annotations

import inspect
import typing
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, Settings
from sandlab.cli.screen import tell
from sandlab.errors import BadInput, choice, integer, nearest

__all__ = ["commands"]

commands = typer.Typer()

FORMATS = ("hf", "gpt2", "lens", "torch")


@commands.command(
    epilog="Example:  sandlab export runs/training/…/model --out my-model --world dyck   ·   "
    "sandlab export induction-head --set states=3 --set length=64"
)
def export(
    model: Annotated[str, typer.Argument(help="Folder of a model that `train` or `compile` saved, or a circuit.")],
    to: Annotated[str, typer.Option(help="hf (any model), gpt2, lens (TransformerLens), torch (.pt2).")] = "hf",
    out: Annotated[Path, typer.Option(help="Where to write: a folder, or a file for torch and lens.")] = Path("export"),
    world: Annotated[str, typer.Option(help="World whose letters become the tokenizer.")] = "",
    alphabet: Annotated[str, typer.Option("--letters", help="Or the letters themselves, such as ab.")] = "",
    length: Annotated[int | None, typer.Option(help="With --to torch: tokens of an input.")] = None,
    settings: Settings = None,
) -> None:
    """Write a model or a circuit for another library, with the same logits, or say why it cannot be.

    Settings are those of the circuit, or of the world whose letters are used; world.X=… is always the world's.
    """
    from sandlab.cli.browse import make_world
    from sandlab.cli.settings import pairs, under
    from sandlab.registry import get, names, summary

    choice("to", to, FORMATS)
    texts = pairs(settings or [])
    own = {name: text for name, text in texts.items() if not name.startswith("world.")}
    circuit = not Path(model).exists() and model in names("circuits")
    if (
        not circuit
        and not Path(model).exists()
        and model not in names("models")
        and (hint := nearest(model, names("circuits")))
    ):
        raise BadInput(f"no model in {model}, and no circuit of that name: {hint}")
    network = make_circuit(model, own) if circuit else saved(Path(model))
    about = f"The circuit {model}: {summary(get('circuits', model))}" if circuit else ""
    if texts and not (world or (circuit and own == texts)):
        raise BadInput(f"--set {next(iter(texts))} is a setting of a world: add --world NAME")
    letters = make_world(world, under("world", texts) | ({} if circuit else own)).letters if world else list(alphabet)
    known = getattr(network.config, "vocab", len(letters))
    if letters and len(letters) != known:
        hint = "give the settings of its world, --set world.NAME=VALUE" if world else "give one for each token"
        raise BadInput(f"{world or '--letters'} has {len(letters)} letters, the model reads {known}: {hint}")
    if to == "hf":
        from sandlab.models.hugging_face import export_hugging_face

        path = export_hugging_face(network, out, letters=letters, about=about)
        tell(f"{path}: load it with AutoModelForCausalLM after `import sandlab`")
    elif to == "gpt2":
        from sandlab.models.convert import to_hugging_face

        to_hugging_face(_transformer(network)).save_pretrained(out)
        tell(f"{out}: a GPT-2 that needs no SandLab")
    elif to == "lens":
        from safetensors.torch import save_file

        from sandlab.models.convert import to_transformer_lens

        twin = to_transformer_lens(_transformer(network))
        save_file({name: value.contiguous().clone() for name, value in twin.state_dict().items()}, out)
        tell(f"{out}: the weights of a HookedTransformer ({twin.cfg.n_layers} layers, width {twin.cfg.d_model})")
    else:
        from sandlab.lab.torch_export import export_torch

        path, takes = export_torch(network, out, length=length)
        tell(f"{path}: load it with torch.export.load; it takes {takes}")


def saved(folder: Path) -> Any:
    """The model in a folder; a folder that `sandlab train` wrote holds it in a folder `model`."""
    from sandlab.models.io import load
    from sandlab.registry import names

    inner = folder / "model"
    if ".py" in folder.suffix:
        module = folder if ":" in folder.name else f"{folder}:MyModule"
        raise BadInput(f"{folder} has no trained weights: sandlab train --world NAME --model {module} makes a model")
    if inner.is_dir():
        return load(inner)
    several = sorted(each.name for each in folder.glob("model-*"))
    if several:
        raise BadInput(f"{folder} holds the models of several seeds: name one of them, such as {folder / several[0]}")
    if not folder.exists() and str(folder) in names("models"):
        raise BadInput(
            f"{folder} is an architecture without weights: sandlab train --world NAME --model {folder} makes a model"
        )
    return load(folder)


def make_circuit(name: str, texts: dict[str, str]) -> Any:
    """A circuit from its name and `--set` texts; an automaton is given by name, such as machine=D6."""
    from sandlab.cli.settings import read_value
    from sandlab.models.base import Model
    from sandlab.registry import get
    from sandlab.worlds.automata.catalogue import named_machine
    from sandlab.worlds.automata.machine import Automaton

    make = get("circuits", name)
    hints = typing.get_type_hints(make)
    known = inspect.signature(make).parameters
    values: dict[str, Any] = {}
    for field, text in texts.items():
        if field not in known:
            raise BadInput(f"{name} has no setting {field!r}: {nearest(field, known) or 'it has ' + ', '.join(known)}")
        hint = hints.get(field, Any)
        values[field] = named_machine(text) if hint is Automaton else read_value(hint, text, field)
    missing = [each.name for each in known.values() if each.default is each.empty and each.name not in values]
    missing = [field for field in missing if known[field].kind is not inspect.Parameter.VAR_KEYWORD]
    if missing:
        example = " ".join(f"--set {field}=…" for field in missing)
        raise BadInput(f"{name} needs {', '.join(missing)}: add {example} (see `sandlab show {name}`)")
    made = make(**values)
    if not isinstance(made, Model):
        raise BadInput(f"{name} is a part of circuits and no model by itself: it is used in Python")
    return made


def _transformer(model: Any) -> Any:
    from sandlab.models.transformer import Transformer

    if not isinstance(model, Transformer):
        raise BadInput(
            f"{type(model).__name__} has no equivalent there: use --to hf, which takes any model, or in Python "
            "sl.lab.bridge_to_transformer_lens"
        )
    return model


@commands.command("eval", epilog="Example:  sandlab eval runs/training/…/model --world dyck --set length=64")
def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    world: Annotated[str, typer.Option(help="Name of a world.")],
    settings: Settings = None,
    examples: Annotated[int, typer.Option("-n", "--examples", help="How many examples.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure a saved model on a world: loss and accuracy, beside the best possible loss and the world's baselines."""
    from sandlab.cli.browse import make_world
    from sandlab.cli.screen import print_json, print_table, text_number
    from sandlab.cli.settings import pairs
    from sandlab.learning._engine.evaluation import evaluate_batch
    from sandlab.learning.objectives import CrossEntropy
    from sandlab.random import rng
    from sandlab.worlds.base import cross_entropy

    integer("-n", examples, low=1)
    network, made = saved(model), make_world(world, pairs(settings or []))
    batch = made.sample(examples, rng=rng(seed))
    known = getattr(network.config, "vocab", None)
    if known is not None and known < made.vocab:
        raise BadInput(f"the model knows {known} tokens and {world} has {made.vocab}: it was trained on another world")
    found = {name: float(value) for name, value in evaluate_batch(network, batch, CrossEntropy()).items()}
    levels = {"this model": found["loss"]}
    try:
        levels["the best possible"] = made.optimal_loss(batch)
        levels |= {name: float(cross_entropy(predict(batch), batch)) for name, predict in made.baselines().items()}
    except NotImplementedError:
        pass
    if as_json:
        print_json({"world": repr(made), "examples": examples, "accuracy": found.get("accuracy"), "loss": levels})
        return
    print_table(["", "nats per target"], [[name, text_number(value)] for name, value in levels.items()], repr(made))
    if "accuracy" in found:
        tell(f"accuracy {found['accuracy']:.4f} on {examples} examples")
