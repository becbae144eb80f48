# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start if the folder is in PYTHONPATH."""
import quick_optimizers  # noqa: F401
