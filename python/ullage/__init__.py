# SPDX-License-Identifier: Apache-2.0
"""The Python interface of Ullage.

`ullage run --memory 3GiB -- python train.py` needs none of it: the program stays as it is. mark_step() and report() are
safe and cheap in a plain run too, where active() is false. explain() explains an out-of-memory error, with or without a
budget. run() begins a budget in a running process, such as a notebook's. predict() predicts what a function will need.
"""
from ullage._budget import Budget, run
from ullage._explain import Explanation, explain
from ullage._predict import Prediction, predict
from ullage._runtime import Memory, active, mark_step, report

__all__ = ["Budget", "Explanation", "Memory", "Prediction", "active", "explain", "mark_step", "predict", "report", "run"]
