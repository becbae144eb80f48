# SPDX-License-Identifier: Apache-2.0
"""Has the optimizers of VQGAN-CLIP by the names of its option, at its settings. Two that torch lacks are written out
here."""
import math

import torch


class DiffGrad(torch.optim.Optimizer):
    """Adam whose step is damped by sigmoid(|change of the gradient|) (arXiv 1909.11015); eps is added to the root that
    is not yet corrected. Weight decay is added to the gradient."""

    def __init__(self, tensors, lr, betas=(0.9, 0.999), eps=1e-9, weight_decay=1e-9):
        super().__init__(tensors, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (first, second), rate = group["betas"], group["lr"]
            for x in group["params"]:
                state = self.state[x]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(x), square=torch.zeros_like(x), before=torch.zeros_like(x))
                state["step"] += 1
                gradient = x.grad + group["weight_decay"] * x
                state["mean"] = first * state["mean"] + (1 - first) * gradient
                state["square"] = second * state["square"] + (1 - second) * gradient**2
                damped = state["mean"] * torch.sigmoid((state["before"] - gradient).abs())
                state["before"] = gradient
                corrected = rate * math.sqrt(1 - second ** state["step"]) / (1 - first ** state["step"])
                x -= corrected * damped / (state["square"].sqrt() + group["eps"])


class AdamP(torch.optim.Optimizer):
    """Adam that does not lengthen x (arXiv 2006.08217). Takes the part along x out of the step where gradient and x are
    all but perpendicular: in each x[i] if all are so, else in x whole if that is so. There is no weight decay here."""

    def __init__(self, tensors, lr, betas=(0.9, 0.999), eps=1e-8, delta=0.1):
        super().__init__(tensors, {"lr": lr, "betas": betas, "eps": eps, "delta": delta})

    @staticmethod
    def projected(x, gradient, step, delta, eps):
        for rows in (x.size(0), 1):
            a, b, c = (tensor.reshape(rows, -1) for tensor in (gradient, x, step))
            cosine = (a * b).sum(1).abs() / (a.norm(dim=1) + eps) / (b.norm(dim=1) + eps)
            if cosine.max() < delta / math.sqrt(b.size(1)):
                unit = b / (b.norm(dim=1, keepdim=True) + eps)
                return (c - unit * (unit * c).sum(1, keepdim=True)).view(x.shape)
        return step

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for x in group["params"]:
                state = self.state[x]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(x), square=torch.zeros_like(x))
                state["step"] += 1
                state["mean"] = first * state["mean"] + (1 - first) * x.grad
                state["square"] = second * state["square"] + (1 - second) * x.grad**2
                root = state["square"].sqrt() / math.sqrt(1 - second ** state["step"]) + group["eps"]
                step = state["mean"] / root
                if x.dim() > 1:
                    step = self.projected(x, x.grad, step, group["delta"], group["eps"])
                x -= group["lr"] / (1 - first ** state["step"]) * step


OPTIMIZERS = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW, "Adagrad": torch.optim.Adagrad,
              "Adamax": torch.optim.Adamax, "DiffGrad": DiffGrad, "AdamP": AdamP, "RAdam": torch.optim.RAdam,
              "RMSprop": torch.optim.RMSprop}
