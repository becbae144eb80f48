# SPDX-License-Identifier: Apache-2.0
"""Runs random programs on a card. Every tensor is large, so that a budget moves it.

usage: random_programs.py FIRST_SEED COUNT
A program is a number of random actions on a set of tensors. Refusals within the budget are caught, as a program may do
it. Any other error ends the run with the seed. The last line counts what was done.
"""
import collections
import concurrent.futures
import random
import sys
import traceback

import torch
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
ACTIONS = 50
MOST_LIVE = 24  # tensors
done = collections.Counter()
side_streams = [torch.cuda.Stream() for _ in range(2)]


class Fails(torch.autograd.Function):
    """Raises in its backward pass."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ArithmeticError("asked for")


class Program:
    def __init__(self, seed, live=None):
        self.random = random.Random(seed)
        self.live = [self.made() for _ in range(4)] if live is None else live
        self.events = []
        self.is_helper = live is not None
        self.actions = [getattr(Program, name) for name in dir(Program) if name.startswith("do_")]

    def run(self, actions=ACTIONS):
        for _ in range(actions):
            action = self.random.choice(self.actions)
            try:
                if self.random.random() < 0.3:
                    self.beside(action)
                else:
                    action(self)
                done[action.__name__[3:]] += 1
            except torch.OutOfMemoryError:
                done["refused"] += 1
            while len(self.live) > MOST_LIVE:
                self.live.pop(self.random.randrange(len(self.live)))

    def beside(self, action):
        """Runs an action on another stream, after the work of the current stream. The current stream waits for it
        afterwards."""
        stream = self.random.choice(side_streams)
        stream.wait_stream(torch.cuda.current_stream())
        before = list(self.live)
        try:
            with torch.cuda.stream(stream):
                action(self)
        finally:
            for tensor in before:
                tensor.record_stream(stream)
            torch.cuda.current_stream().wait_stream(stream)
        for tensor in self.live:  # what the action made is used on the current stream
            tensor.record_stream(torch.cuda.current_stream())
        done["beside"] += 1

    def made(self):
        rows, columns = self.random.choice([(1024, 1024), (1024, 2048), (2048, 1024), (3000, 1000), (2048, 2048)])
        kind = self.random.randrange(4)
        if kind == 0:
            return torch.empty(rows, columns, device="cuda")
        if kind == 1:
            return torch.zeros(rows, columns, device="cuda")
        if kind == 2:
            return torch.full((rows, columns), 0.5).cuda()
        return torch.randn(rows, columns, device="cuda")

    def pick(self):
        return self.random.choice(self.live) if self.live else self.made()

    def keep(self, tensor):
        self.live.append(tensor)

    def do_make(self):
        self.keep(self.made())

    def do_make_from_pinned(self):
        self.keep(torch.empty(1024, 1536, pin_memory=True).to("cuda", non_blocking=True))

    def do_forget(self):
        if self.live:
            self.live.pop(self.random.randrange(len(self.live)))

    def do_forget_many(self):
        self.live = self.random.sample(self.live, len(self.live) // 3)

    def do_compute(self):
        one = self.pick()
        self.keep(self.random.choice([torch.relu, torch.sin, lambda x: x * 2 + 1, torch.clone,
                                      lambda x: torch.nn.functional.leaky_relu(x, 0.2), lambda x: x.softmax(-1),
                                      lambda x: x.cumsum(0), lambda x: x.contiguous().t().contiguous()])(one))

    def do_compute_of_two(self):
        one = self.pick()
        other = self.random.choice([two for two in self.live if two.shape == one.shape] or [one])
        self.keep(self.random.choice([torch.add, torch.mul, torch.maximum])(one, other))

    def do_write(self):
        one = self.pick()
        self.random.choice([lambda x: x.add_(1), lambda x: x.mul_(x), lambda x: x.zero_(), lambda x: x.relu_(),
                            lambda x: torch.nn.functional.leaky_relu(x, 0.2, inplace=True), lambda x: x.uniform_(),
                            lambda x: x[len(x) // 2:].fill_(3), lambda x: x.copy_(torch.zeros_like(x))])(one)

    def do_view(self):
        one = self.pick()
        self.keep(self.random.choice([lambda x: x[len(x) // 2:], lambda x: x.t(), lambda x: x.unsqueeze(0)[0],
                                      lambda x: x[::2], lambda x: x.detach()])(one))

    def do_multiply(self):
        one = self.pick()
        self.keep(one @ torch.randn(one.shape[1], 1024, device="cuda"))

    def do_lists(self):
        some = self.random.sample(self.live, min(4, len(self.live)))
        if some:
            torch._foreach_mul_(some, 0.5)
            self.live += torch._foreach_add(some[:2], 1)

    def do_join(self):
        one = self.pick()
        self.keep(torch.cat([one, one[: len(one) // 2]]))

    def do_pick_rows(self):
        one = self.pick()
        self.keep(one.index_select(0, torch.randint(0, len(one), (1100,), device="cuda")))

    def do_read(self):
        self.pick().sum().item()

    def do_copy_out(self):
        self.pick().to("cpu", non_blocking=self.random.random() < 0.5)

    def do_wait(self):
        self.random.choice([torch.cuda.synchronize, lambda: torch.cuda.current_stream().synchronize()])()

    def do_ask(self):
        self.events.append(torch.cuda.Event())
        self.events[-1].record()
        self.random.choice(self.events).query()

    def do_use_two_threads(self):
        """Lets another thread work on some of the same tensors meanwhile. That thread may write what this one reads."""
        if self.is_helper:
            return
        helper = Program(self.random.random(), self.random.sample(self.live, len(self.live) // 2))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            ended = pool.submit(helper.run, 8)
            self.is_helper = True  # for as long as the other one runs
            self.run(8)
            self.is_helper = False
            ended.result()

    def do_ask_for_too_much(self):
        try:
            torch.empty(40 << 30, device="cuda")
        except torch.OutOfMemoryError:
            done["too much"] += 1

    def do_train(self):
        width = 1024
        layers = [torch.randn(width, width, device="cuda", requires_grad=True) for _ in range(self.random.randrange(1, 5))]
        x = torch.randn(2048, width, device="cuda", requires_grad=self.random.random() < 0.5)
        how = self.random.choice(["plain", "checkpoint", "reentrant", "fails", "twice", "in place"])
        steps = self.random.randrange(1, 4)
        optimizer = self.random.choice([torch.optim.SGD, torch.optim.Adam])(layers, foreach=self.random.random() < 0.5)
        for _ in range(steps):
            y = x
            for weight in layers:
                def layer(z, weight=weight):
                    return torch.nn.functional.leaky_relu(z @ weight, 0.2, inplace=how == "in place")
                if how == "checkpoint":
                    y = checkpoint(layer, y, use_reentrant=False)
                elif how == "reentrant" and y.requires_grad:
                    y = checkpoint(layer, y, use_reentrant=True)
                else:
                    y = layer(y)
            loss = (Fails.apply(y) if how == "fails" else y).square().mean()
            try:
                loss.backward(retain_graph=how == "twice")
                if how == "twice":
                    loss.backward()
            except ArithmeticError:
                done["raised in backward"] += 1
            optimizer.step()
            optimizer.zero_grad(set_to_none=self.random.random() < 0.7)
        if self.random.random() < 0.3:
            self.keep(y)  # with its graph


def main() -> int:
    first, count = map(int, sys.argv[1:])
    for seed in range(first, first + count):
        torch.manual_seed(seed)
        try:
            Program(seed).run()
        except torch.OutOfMemoryError:
            done["refused at the start"] += 1  # cuBLAS has a workspace for each thread and stream, which never moves
        except Exception as error:
            # A thread wrote a tensor while another one saved it. Without a hook torch would not notice.
            if "pack hook is modifying its input in place" in str(error):
                done["raced"] += 1
                continue
            traceback.print_exc()
            print(f"seed {seed} failed", flush=True)
            return 1
    print(f"{count} programs:", ", ".join(f"{number} {what}" for what, number in sorted(done.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
