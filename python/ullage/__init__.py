# SPDX-License-Identifier: Apache-2.0
"""What a Python program may ask of Ullage.

`ullage run --memory 3GiB -- python train.py` needs none of it: the program stays as it is. All of it is safe and cheap
in a plain run, where active() is false.
"""
from ullage._runtime import Memory, active, mark_step, report

__all__ = ["Memory", "active", "mark_step", "report"]
