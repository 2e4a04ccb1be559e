"""The kernels of the LSTM compute what the layer writes out step by step, and stand back where they may not serve.

Without a GPU the kernels run as Python functions: in a small stand-in for Triton's language, and in Triton's own
interpreter where it is installed.
"""

from __future__ import annotations

import itertools
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from pretended_triton import loaded, ways
from torch import Tensor

from sandlab.models._parts import lstm_on_chip, recurrent_scan
from sandlab.models.recurrent import LSTM

GPU = torch.device("cuda", 0)


@pytest.fixture(params=ways())
def kernels(request: pytest.FixtureRequest) -> Any:
    with loaded(request.param) as found:
        yield found


def written_out(drive: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The formulas, in float64, for torch to differentiate."""
    drive, weight, hidden, cell = (each.double() for each in (drive, weight, hidden, cell))
    states = []
    for pushed in drive.unbind(1):
        i, f, g, o = (pushed + hidden @ weight.mT).chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        states.append(hidden)
    return torch.stack(states, 1).float(), cell.float()


def numbers(members: int, time: int, batch: int, width: int) -> list[Tensor]:
    rng = torch.Generator().manual_seed(members + 10 * time + 100 * batch + 1000 * width)
    shapes = [(members, time, batch, 4 * width), (members, 4 * width, width), *[(members, batch, width)] * 2]
    made = [torch.randn(shape, generator=rng) for shape in shapes]
    made[1] *= width**-0.5
    return [each.requires_grad_() for each in made]


def distances(values: list[Tensor], sent: float = 1.0) -> list[float]:
    """Of the states, the last cell and the four gradients, each member's by itself: relative to its largest entry."""
    rng = torch.Generator().manual_seed(0)
    found = []
    for way in (lstm_on_chip.scan, written_out):
        results = way(*values)
        rng.manual_seed(0)
        gradients = [sent * torch.randn(each.shape, generator=rng) for each in results]
        found.append([*(each.detach() for each in results), *torch.autograd.grad(results, values, gradients)])
    rows = ((one.flatten(1), other.flatten(1)) for one, other in zip(*found))
    return [float(((one - other).abs().amax(1) / other.abs().amax(1)).max()) for one, other in rows]


@pytest.mark.parametrize(
    ("members", "time", "batch", "width"),
    [(2, 5, 3, 16), (3, 4, 17, 20), (1, 1, 1, 1), (2, 9, 16, 33), (1, 2, 33, 128)],
)
def test_states_and_gradients_are_those_of_the_formulas(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, members: int, time: int, batch: int, width: int
) -> None:
    monkeypatch.setattr(kernels, "FACTOR", "float32")
    assert max(distances(numbers(members, time, batch, width))) < 1e-5


def test_float16_factors_are_as_exact_as_tf32(kernels: ModuleType) -> None:
    """TF32 rounds a factor by at most 2⁻¹¹ of it; so does float16 inside its range."""
    assert max(distances(numbers(2, 12, 5, 32))) < 2**-10


@pytest.mark.parametrize("scale", [1e-20, 1e-7, 1e6])
def test_gradients_outside_the_range_of_float16_are_as_exact(kernels: ModuleType, scale: float) -> None:
    assert max(distances(numbers(2, 6, 3, 16), scale)) < 2**-10


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e6])
def test_weights_outside_the_range_of_float16(kernels: ModuleType, scale: float) -> None:
    values = numbers(2, 3, 2, 16)
    with torch.no_grad():
        values[1][1] *= scale  # the other member keeps its own
    assert max(distances(values)) < (2**-10 if scale < 1 else 0.05)  # gates that jump magnify a rounding


def test_no_gradient_at_all_is_zero_and_no_number_is_lost(kernels: ModuleType) -> None:
    values = numbers(1, 3, 2, 16)
    every, _ = lstm_on_chip.scan(*values)
    assert all(not each.any() for each in torch.autograd.grad(every, values, torch.zeros_like(every)))


def test_layers_of_a_population_are_those_step_by_step(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers of three members that differ, on a sequence read in two pieces."""
    monkeypatch.setattr(kernels, "FACTOR", "float32")
    monkeypatch.setattr(lstm_on_chip, "serves", lambda *_: True)
    torch.manual_seed(0)
    model = LSTM(vocab=5, width=10, layers=2, torch_start=True)
    for parameter in model.parameters():
        parameter.data = torch.randn(3, *parameter.shape) * 0.3
    x = torch.randn(3, 4, 6, 10, requires_grad=True)
    found = []
    for way in ("_at_once", "_step_by_step"):
        total, now = x.new_zeros(()), x
        for layer in model.layers:
            read = getattr(layer, way)
            first, state = read(now[:, :, :2], None)
            second, state = read(now[:, :, 2:], state)
            now = torch.cat([first, second], 2)
            total = total + (state[0] * state[1]).sum()
        weights = [x, *model.layers.parameters()]
        found.append([now.detach(), *torch.autograd.grad(total + (now**2).sum(), weights)])
    for fast, plain in zip(*found):
        torch.testing.assert_close(fast, plain, rtol=1e-5, atol=2e-6)


def test_the_check_passes_kernels_that_are_right_and_draws_nothing(kernels: ModuleType) -> None:
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the LSTM's kernels")
        assert lstm_on_chip._agrees(20, torch.device("cpu"), recurrent_scan._Scan.apply)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("wrong", ["a gate", "not a number", "does not compile", "the gradient alone"])
def test_the_check_says_in_one_sentence_why_kernels_are_not_used(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    scan = lstm_on_chip.scan

    def broken(drive: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        if wrong == "does not compile":
            raise RuntimeError("out of resource: shared memory\nRequired: 237568")
        if wrong == "a gate":
            return scan(drive, weight.roll(1, 1), hidden, cell)
        if wrong == "not a number":
            return scan(drive + torch.nan, weight, hidden, cell)
        return scan(drive, weight, hidden, cell.detach() + 0 * cell)

    monkeypatch.setattr(lstm_on_chip, "scan", broken)
    with pytest.warns(UserWarning, match="not used at width 16 on cpu") as said:
        assert not lstm_on_chip._agrees(16, torch.device("cpu"), recurrent_scan._Scan.apply)
    (sentence,) = (str(each.message) for each in said if "kernels" in str(each.message))
    assert "\n" not in sentence


def test_a_fault_that_takes_the_gpu_away_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain way needs the same GPU: a warning and a second error would hide what happened."""

    def lost(*_: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(lstm_on_chip, "_outcome", lost)
    monkeypatch.setattr(lstm_on_chip.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.cuda, "synchronize", lost)
    with pytest.raises(RuntimeError, match=r"illegal memory access.*: set SANDLAB_LSTM_KERNELS=0 and give the same"):
        lstm_on_chip._agrees(16, GPU, recurrent_scan._Scan.apply)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    with pytest.warns(UserWarning, match="not used at width 16 on cuda:0"):
        assert not lstm_on_chip._agrees(16, GPU, recurrent_scan._Scan.apply)


class Machine:
    """What `serves` asks of a GPU, and how often it checks."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.checks, self.right, self.recording, self.debug = 0, True, False, 0
        patched.setattr(lstm_on_chip, "_trusted", {})
        patched.setattr(lstm_on_chip, "_agrees", self.check)
        patched.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.recording)
        patched.setattr(torch.cuda, "get_sync_debug_mode", lambda: self.debug)

    def check(self, *_: object) -> bool:
        self.checks += 1
        return self.right

    def serves(self, width: int = 64, dtype: torch.dtype = torch.float32, device: torch.device = GPU) -> bool:
        drive: Any = SimpleNamespace(is_cuda=device.type == "cuda", dtype=dtype, device=device, numel=lambda: 1)
        return lstm_on_chip.serves(drive, torch.empty(2, 4 * width, width), recurrent_scan._Scan.apply)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield Machine(monkeypatch)
    torch.set_float32_matmul_precision(before)


def test_each_width_on_each_device_is_checked_once(machine: Machine) -> None:
    for width, index in itertools.product((64, 128, 64), (0, 1, 0)):
        assert machine.serves(width, device=torch.device("cuda", index))
    assert machine.checks == 4


def test_kernels_that_failed_are_not_tried_again(machine: Machine) -> None:
    machine.right = False
    assert not machine.serves() and not machine.serves()
    assert machine.checks == 1


def test_the_environment_says_that_they_are_not_used(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lstm_on_chip.VARIABLE, "0")
    assert not machine.serves() and machine.checks == 0
    monkeypatch.setenv(lstm_on_chip.VARIABLE, "1")
    assert machine.serves()


def test_nothing_is_checked_inside_a_recording(machine: Machine) -> None:
    machine.recording = True
    assert not machine.serves()
    machine.recording, machine.debug = False, 2
    assert not machine.serves() and machine.checks == 0
    machine.debug = 0
    assert machine.serves()
    machine.recording = True
    assert machine.serves() and machine.checks == 1


def test_what_does_not_fit_or_must_be_exact_goes_the_plain_way(machine: Machine) -> None:
    assert not machine.serves(device=torch.device("cpu"))
    assert not machine.serves(width=129)
    assert not machine.serves(dtype=torch.float64)
    assert not machine.serves(dtype=torch.bfloat16)  # a model of bfloat16 keeps its states in it
    torch.set_float32_matmul_precision("highest")
    assert not machine.serves()
    assert machine.checks == 0


def test_inside_a_bf16_context_states_are_float32(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: True)
    assert machine.serves(dtype=torch.bfloat16)
    assert not machine.serves(dtype=torch.float64)


@pytest.mark.parametrize("served", [True, False])
def test_the_layer_asks_at_every_call(monkeypatch: pytest.MonkeyPatch, served: bool) -> None:
    marks: list[str] = []
    monkeypatch.setattr(lstm_on_chip, "serves", lambda *_: served)
    monkeypatch.setattr(lstm_on_chip, "scan", lambda *values: marks.append("kernels") or values[2:])
    recurrent_scan.lstm_scan(*numbers(1, 2, 2, 4))
    assert marks == ["kernels"] * served
