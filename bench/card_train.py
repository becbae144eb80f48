# SPDX-License-Identifier: Apache-2.0
"""Trains one net on made-up data and says in a line of JSON how it went. card.py runs it, plain and under budgets.

It is an ordinary program of torch and nothing else, the same on a card and on the CPU. Two plain runs give the same
bits. The line has the losses and the seconds of each step, their median behind --warm-up, and units (images or tokens)
a second. It also has the SHA-256 of parameters, buffers, optimizer state and generators, and torch's figures of memory.

usage: card_train.py --net dcgan|resnet50|gpt|unet [--device cuda|cpu] [--steps N] [--seed N] [--amp] [--batch N] ...
"""
import argparse
import ctypes
import faulthandler
import hashlib
import json
import os
import platform
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the card is first used

import torch  # noqa: E402
from card_gpt import GptTraining  # noqa: E402
from card_nets import Dcgan, ResNet50, Training, UNetTraining  # noqa: E402

NETS = {"dcgan": Dcgan, "resnet50": ResNet50, "gpt": GptTraining, "unet": UNetTraining}
SIZES = {"batch": "pictures or texts a step", "size": "pixels of a picture's side", "length": "words of a text",
         "width": "channels of the first layer, or of each", "layers": "of gpt", "words": "that gpt knows"}
FED = 4  # steps whose inputs are made beforehand and then repeat
PATIENCE = 30  # seconds beyond --stop-after


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("usage: ")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", choices=NETS, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=3, help="steps whose seconds do not count")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--amp", action="store_true", help="forward passes in bfloat16")
    parser.add_argument("--fused", action="store_true", help="gpt with torch's own attention")
    parser.add_argument("--stop-after", type=float, help="seconds from the start; no step is begun later")
    for name, meaning in SIZES.items():
        parser.add_argument(f"--{name}", type=int, help=meaning)
    options = parser.parse_args()
    defaults = NETS[options.net].defaults
    for name in SIZES:
        if getattr(options, name) is None:
            setattr(options, name, defaults.get(name))
        elif name not in defaults:
            parser.error(f"{options.net} has no --{name}")
    if options.fused and options.net != "gpt":
        parser.error(f"{options.net} has no --fused")
    return options


def make_repeatable(options: argparse.Namespace) -> None:
    # With warn_only, torch's fused attention would still add up in any order.
    torch.use_deterministic_algorithms(True, warn_only=not options.fused)
    torch.utils.deterministic.fill_uninitialized_memory = False  # filling costs time and hides bad reads
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.manual_seed(options.seed)


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def train(training: Training, options: argparse.Namespace, began: float) -> tuple[list, list]:
    """Returns the losses and the seconds of each step, including the copy of its inputs."""
    fed = [training.inputs() for _ in range(min(FED, options.steps))]
    losses, seconds = [], []
    for step in range(options.steps):
        if options.stop_after and time.monotonic() - began > options.stop_after:
            break
        synchronize(training.device)
        start = time.perf_counter()
        told = training.step(*(part.to(training.device, copy=True) for part in fed[step % len(fed)]))
        synchronize(training.device)
        seconds.append(time.perf_counter() - start)
        losses.append([loss.item() for loss in told])
    return losses, seconds


def state_of(training: Training) -> dict:
    """Returns all state that the next step would begin with, except its inputs."""
    state = {"generator of the CPU": torch.get_rng_state()}
    if training.device.type == "cuda":
        state["generator of the card"] = torch.cuda.get_rng_state(training.device)
    for name, module in training.modules.items():
        state |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
    for name, optimizer in training.optimizers.items():
        for number, values in optimizer.state_dict()["state"].items():
            state |= {f"optimizer of {name}.{number}.{key}": value for key, value in values.items()}
    return state


def digest(state: dict) -> str:
    sha256 = hashlib.sha256()
    for name in sorted(state):
        value = state[name]
        if isinstance(value, torch.Tensor):
            here = value.detach().cpu().contiguous()
            sha256.update(f"{name} {here.dtype} {tuple(here.shape)}\n".encode())
            if here.numel() > 0:  # reads the bytes without numpy
                sha256.update((ctypes.c_char * here.nbytes).from_address(here.data_ptr()))
        else:
            sha256.update(f"{name} {value!r}\n".encode())
    return sha256.hexdigest()


def state_bytes(training: Training, state: dict) -> int:
    """Returns the bytes of tensors that live from step to step; gradients count among them."""
    tensors = [value for value in state.values() if isinstance(value, torch.Tensor)]
    for module in training.modules.values():
        tensors += [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())  # some share a storage


def versions(device: torch.device) -> dict:
    on_card = device.type == "cuda"
    return {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version() if on_card else None,
            "card": torch.cuda.get_device_name(device) if on_card else None}


def main() -> None:
    began = time.monotonic()
    options = parse()
    if options.stop_after:  # if the program hangs, it prints where
        faulthandler.dump_traceback_later(options.stop_after + PATIENCE, exit=True)
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("card_train: this torch finds no card; --device cpu trains without one")
    make_repeatable(options)
    training = NETS[options.net](options)
    losses, seconds = train(training, options, began)
    state = state_of(training)
    counted = seconds[options.warm_up:]
    median = statistics.median(counted) if counted else None
    on_card = device.type == "cuda"
    print(json.dumps({
        "net": options.net, "device": options.device, "steps": len(losses), "losses": losses, "step_seconds": seconds,
        "step_seconds_median": median, "unit": training.unit,
        "units_per_second": training.per_step / median if median else None,
        "sha256": digest(state), "state_bytes": state_bytes(training, state),
        "allocated_bytes": torch.cuda.max_memory_allocated(device) if on_card else None,
        "reserved_bytes": torch.cuda.max_memory_reserved(device) if on_card else None, **versions(device)}), flush=True)


if __name__ == "__main__":
    main()
