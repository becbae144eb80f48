# SPDX-License-Identifier: Apache-2.0
"""Catches errors and keeps them. Their tracebacks hold the tensors of dead frames. So do cycles that only gc frees."""
import argparse
import gc
import sys
import traceback
import weakref

import torch
import torch.nn as nn


class Node:
    def __init__(self, tensor):
        self.tensor, self.me = tensor, self


def fails_late(model, x):
    activations = [x]
    for layer in model:
        activations.append(torch.relu(layer(activations[-1])))
    return activations[-1] @ torch.randn(3, 3)


def attempt(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return error
    return None


def inner_frames(error):
    frames = []
    at = error.__traceback__
    while at:
        frames.append(at.tb_frame)
        at = at.tb_next
    return frames


def changed_in_place(x):
    w = torch.randn_like(x, requires_grad=True)
    y = w.sigmoid()
    y.add_(1)
    y.sum().backward()


def hook_that_raises(x):
    w = torch.randn_like(x, requires_grad=True)
    y = (w * 2).tanh()
    y.register_hook(lambda g: 1 / 0)
    y.sum().backward()


def generator_left_open(x):
    def stream():
        held = [x * k for k in range(8)]
        for h in held:
            yield h.sum().item()
    s = stream()
    print("from the generator", next(s), next(s))
    return s


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="caught.pt")
    args = parser.parse_args()
    torch.manual_seed(15)
    model = nn.ModuleList(nn.Linear(512, 512) for _ in range(6))
    x = torch.randn(2048, 512)

    errors = [attempt(fails_late, model, x), attempt(changed_in_place, x), attempt(hook_that_raises, x),
              attempt(torch.cat, [x, x[:, :3]]), attempt(lambda: x.view(7, -1)), attempt(lambda: torch.empty(-1)),
              attempt(lambda: nn.functional.embedding(torch.tensor([9]), torch.randn(4, 4)))]
    for error in errors:
        print(type(error).__name__, str(error).splitlines()[0])
    open_stream = generator_left_open(x)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(4):
        gc.disable()
        y = x
        for layer in model:
            y = torch.tanh(layer(y))
            Node(y.detach().clone())  # a cycle; it lives until gc looks
        watch = weakref.ref(Node(y).tensor)
        loss = (y - 0.1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del y
        print("step", step, "loss", loss.item(), "alive", watch() is not None)
        gc.enable()
        print("collected", gc.collect() > 0)

    held = inner_frames(errors[0])[-1].f_locals["activations"]
    print("the traceback holds", len(held), "tensors:", [h.sum().item() for h in held])
    print("the stream goes on", next(open_stream))
    print("".join(traceback.format_exception_only(errors[3])).strip())
    state = {"model": model.state_dict(), "held": [h.detach() for h in held], "rng": torch.get_rng_state()}
    errors.clear()
    del held
    print("after that", gc.collect() >= 0, sys.exc_info()[0])
    torch.save(state, args.out)


if __name__ == "__main__":
    main()
