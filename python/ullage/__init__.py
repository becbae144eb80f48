# SPDX-License-Identifier: Apache-2.0
"""What a Python program may ask of Ullage.

`ullage run --memory 3GiB -- python train.py` needs none of it: the program stays as it is. All of it is safe and cheap
in a plain run, where active() is false. explain() tells why an error of lack of memory came, with or without a budget.
"""
from ullage._explain import Explanation, explain
from ullage._runtime import Memory, active, mark_step, report

__all__ = ["Explanation", "Memory", "active", "explain", "mark_step", "report"]
