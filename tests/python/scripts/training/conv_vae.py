# SPDX-License-Identifier: Apache-2.0
"""Variational autoencoder on 64x64 drawings."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn, optim


class VAE(nn.Module):
    def __init__(self, width, latent):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, 2, 1), nn.ELU(),
            nn.Conv2d(width, 2 * width, 4, 2, 1), nn.ELU(),
            nn.Conv2d(2 * width, 4 * width, 4, 2, 1), nn.ELU(), nn.Flatten())
        self.mu = nn.Linear(4 * width * 64, latent)
        self.logvar = nn.Linear(4 * width * 64, latent)
        self.expand = nn.Linear(latent, 4 * width * 64)
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (4 * width, 8, 8)),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1), nn.ELU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ELU(),
            nn.ConvTranspose2d(width, 1, 4, 2, 1), nn.Sigmoid())

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return self.decoder(F.elu(self.expand(z)))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def drawings(count):
    """Axis-parallel bars of random place and thickness."""
    grid = torch.arange(64).float()
    centre, thick = torch.rand(count, 1) * 64, 2 + torch.rand(count, 1) * 8
    bar = torch.sigmoid(thick - (grid - centre).abs())
    upright = torch.rand(count) < 0.5
    images = bar.unsqueeze(1).expand(count, 64, 64).clone()
    images[upright] = images[upright].transpose(1, 2)
    return images.unsqueeze(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="VAE example")
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--out", default="results/vae.pt")
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = VAE(width=32, latent=20)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    train_data = drawings(args.batch_size * args.steps).split(args.batch_size)

    model.train()
    train_loss = 0
    for batch_idx, data in enumerate(train_data):
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        print("step {} loss {!r}".format(batch_idx, loss.item() / len(data)))
    print("average loss {!r}".format(train_loss / len(train_data) / args.batch_size))

    model.eval()
    with torch.no_grad():
        sample = model.decode(torch.randn(8, 20))
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict(), sample=sample, rng=torch.get_rng_state()), args.out)
