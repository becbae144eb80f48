# SPDX-License-Identifier: Apache-2.0
"""Uses torch.func: gradients of each sample, forward mode, Hessians. Runs backward through backward, and walks a graph
twice."""
import argparse

import torch
import torch.nn as nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap


def per_sample(model, x, y):
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, x, y):
        return nn.functional.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    grads, losses = vmap(grad_and_value(loss), in_dims=(None, 0, 0))(params, x, y)
    norms = torch.stack([g.flatten(1).pow(2).sum(1) for g in grads.values()]).sum(0).sqrt()
    print("per-sample losses", losses.sum().item(), "norms", norms.sum().item())
    factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)  # differential privacy clips each sample
    return {k: (g * factor.view(-1, *[1] * (g.dim() - 1))).mean(0) for k, g in grads.items()}


def penalty(model, critic, x):
    """WGAN-GP's term: a gradient of a gradient."""
    x = x.clone().requires_grad_()
    score = critic(model(x))
    g, = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = ((g.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
    loss.backward()
    print("penalty", loss.item())
    return {k: p.grad.clone() for k, p in critic.named_parameters() if p.grad is not None}


def twice(model, x):
    out = model(x).logsumexp(1)
    first = torch.autograd.grad(out.sum(), list(model.parameters()), retain_graph=True)
    second = torch.autograd.grad(out.pow(2).sum(), list(model.parameters()))
    print("twice", sum(g.abs().sum().item() for g in first), sum(g.abs().sum().item() for g in second))
    return list(first) + list(second)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="functional.pt")
    args = parser.parse_args()
    torch.manual_seed(21)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.Softplus(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(8 * 49, 64),
                          nn.Tanh(), nn.Linear(64, 10))
    critic = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    x, y = torch.randn(192, 1, 28, 28), torch.randint(0, 10, (192,))
    state = {"clipped": per_sample(model, x, y), "penalty": penalty(model, critic, x), "twice": twice(model, x)}

    w, b = torch.randn(512, 512) / 30, torch.randn(512)
    f = lambda v: torch.tanh(w @ v + b)  # noqa: E731
    v, t = torch.randn(512), torch.randn(512)
    value, tangent = jvp(f, (v,), (t,))
    _, pull = vjp(f, v)
    state["jvp"], state["vjp"], state["jacobian"] = tangent, pull(value)[0], jacrev(f)(v)
    state["hessian"] = hessian(lambda v: f(v).pow(2).sum())(v)
    state["third"] = grad(lambda s: grad(lambda s: grad(lambda s: (s * w[:8]).sin().sum())(s))(s))(torch.tensor(0.7))
    state["batched jacobian"] = vmap(jacrev(lambda v: torch.tanh(w[:64, :64] @ v)))(torch.randn(48, 64))
    print("jacobian", state["jacobian"].norm().item(), "hessian", state["hessian"].norm().item())
    print("third", state["third"].item(), "batched", state["batched jacobian"].norm().item())
    torch.save(state, args.out)


if __name__ == "__main__":
    main()
