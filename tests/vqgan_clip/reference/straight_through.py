# SPDX-License-Identifier: Apache-2.0
"""Functions of VQGAN-CLIP whose gradient is not that of what they compute."""
import torch


class ReplaceGrad(torch.autograd.Function):
    """Gives the first in forward. In backward acts as if it had been the second, to whose shape the gradient is
    summed."""

    @staticmethod
    def forward(context, shown, followed):
        context.shape = followed.shape
        return shown.clone()

    @staticmethod
    def backward(context, gradient):
        return None, gradient.sum_to_size(context.shape)


class ClampWithGrad(torch.autograd.Function):
    """Clamps in forward. In backward passes the gradient, except where following it would lead further outside."""

    @staticmethod
    def forward(context, x, low, high):
        context.low, context.high = low, high
        context.save_for_backward(x)
        return x.clamp(low, high)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        outside = x - x.clamp(context.low, context.high)
        return gradient * (gradient * outside >= 0), None, None


def replace_grad(shown, followed):
    return ReplaceGrad.apply(shown, followed)


def clamp_with_grad(x, low, high):
    return ClampWithGrad.apply(x, low, high)


def distances(rows, codebook):
    """Returns |z|^2 + |e|^2 - 2 z.e of each row (N,C) from each entry (K,C): (N,K)."""
    return rows.pow(2).sum(1, keepdim=True) + codebook.pow(2).sum(1) - 2 * rows @ codebook.T


def nearest(z, codebook):
    """Returns the entry nearest to each pixel of z (B,C,h,w), the first of equals: (B,h,w)."""
    rows = z.detach().movedim(1, 3)
    return distances(rows.reshape(-1, z.size(1)), codebook).argmin(1).view(rows.shape[:3])


def quantise(z, codebook):
    """Puts each pixel's nearest row of the codebook in its place in z (B,C,h,w); the gradient passes as it is."""
    return replace_grad(codebook[nearest(z, codebook)].movedim(3, 1), z)
