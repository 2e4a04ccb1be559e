import torch
from simulation import errors, random_words

import sandlab as sl
from sandlab.circuits import krohn_rhodes_circuit, scan_circuit
from sandlab.circuits.automata.every_start import count_errors_together, layers_in_common


def started(name, build, length):
    plain = sl.worlds.named_machine(name)
    machines = [plain.task(start=start) for start in range(plain.states)]
    return machines, [build(machine, length) for machine in machines]


def test_circuits_of_the_scan_differ_only_where_the_state_is_read_off():
    for name in ("abab", "S4"):
        _, models = started(name, scan_circuit, 16)
        assert layers_in_common(models) == 3  # of four: the last one's network knows the start
    _, models = started("abab", krohn_rhodes_circuit, 16)
    assert layers_in_common(models) == -1  # the anchor carries the start


def test_errors_counted_together_are_those_counted_apart():
    for name, build in (("abab", scan_circuit), ("abab", krohn_rhodes_circuit), ("S3", scan_circuit)):
        machines, models = started(name, build, 12)
        words = random_words(machines[0].alphabet, 12, 30, 0)
        assert count_errors_together(models, machines, words) == 0
        # Labels of the wrong start, and a circuit with a spoiled layer.
        turned = machines[1:] + machines[:1]
        separately = sum(errors(model, machine, words) for model, machine in zip(models, turned))
        assert count_errors_together(models, turned, words) == separately > 0
        with torch.no_grad():
            models[2].layers[1].mlp.maps[-1].weight.mul_(0.5)
        separately = sum(errors(model, machine, words) for model, machine in zip(models, machines))
        assert count_errors_together(models, machines, words) == separately > 0
