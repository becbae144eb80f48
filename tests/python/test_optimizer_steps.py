# SPDX-License-Identifier: Apache-2.0
"""Counts the steps of made-up optimizers. usage: test_optimizer_steps.py base/optimizer_steps.h [part of a name]"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases


class Optimizer:
    pass


def counter(header: pathlib.Path):
    """The class as programs get it."""
    names = {}
    (text,) = re.findall(r"ullage_python\((.*)\)ullage_python", header.read_text(), re.DOTALL)
    exec(text, names)
    return names["OptimizerSteps"]()


def test_a_critic_makes_steps_with_its_generator(header: pathlib.Path) -> None:
    steps, critic, generator = counter(header), Optimizer(), Optimizer()
    seen = []
    for _ in range(6):
        for one in [critic] * 5 + [generator]:
            steps.called(one)
        seen.append(steps.total())
    assert seen == [6, 2, 3, 4, 5, 6], seen  # the generator's first call may be a step of its own
    assert steps.by_size() == {2: 6}, steps.by_size()


def test_optimizers_in_turn_make_one_step(header: pathlib.Path) -> None:
    steps, several = counter(header), [Optimizer() for _ in range(300)]
    for n in range(4):
        for one in several:
            steps.called(one)
        assert steps.total() == n + 1, (n, steps.by_size())


def test_one_that_is_not_called_any_more_holds_nothing_up(header: pathlib.Path) -> None:
    steps, first, second = counter(header), Optimizer(), Optimizer()
    for _ in range(1000):
        steps.called(first), steps.called(second)
    assert steps.total() == 1000, steps.by_size()
    for _ in range(1000):
        steps.called(first)
    lag = 2 * steps.RARELY  # calls until the second one counts as over
    assert steps.by_size() == {2: 1000, 1: 1000 - lag}, steps.by_size()


def test_one_that_died_keeps_its_steps(header: pathlib.Path) -> None:
    steps, lasting = counter(header), Optimizer()
    for _ in range(100):
        steps.called(lasting)
    passing = Optimizer()
    for _ in range(10):
        steps.called(passing)
    del passing
    for _ in range(50):
        steps.called(lasting)
    assert steps.by_size() == {1: 160}, steps.by_size()


def test_a_new_one_for_each_step(header: pathlib.Path) -> None:
    steps = counter(header)
    for _ in range(200):
        steps.called(Optimizer())
    assert steps.total() == 200 and len(steps.groups) <= steps.MOST_GROUPS, steps.by_size()


if __name__ == "__main__":
    run_cases(globals(), pathlib.Path(sys.argv[1]), only=sys.argv[2] if len(sys.argv) > 2 else "")
