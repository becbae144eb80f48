# SPDX-License-Identifier: Apache-2.0
"""The first line of a test's program that compiles nothing, so that it starts sooner.

Optimizers and checkpoints import torch._dynamo, to keep the compiler out of them. The import takes 1.5 s of CPU time,
and no memory of the card.
"""
NO_COMPILER = (
    "import sys, torch; from types import SimpleNamespace as Plain; "
    "sys.modules['torch._dynamo'] = torch._dynamo = Plain(graph_break=lambda: None, "
    "disable=lambda function, *_, **__: function, config=Plain(error_on_nested_fx_trace=True))")
