# SPDX-License-Identifier: Apache-2.0
"""A convolutional autoencoder trained by Lightning's Trainer, fed by worker processes. Needs lightning."""
import argparse
import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(lightning.LightningModule):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.GELU(), nn.Conv2d(width, width * 2, 3, 2, 1), nn.GELU())
        self.decoder = nn.Sequential(nn.ConvTranspose2d(width * 2, width, 4, 2, 1), nn.GELU(), nn.ConvTranspose2d(width, 1, 4, 2, 1))
        self.seen = []

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, _):
        (x,) = batch
        loss = nn.functional.mse_loss(self(x), x)
        self.seen.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        (x,) = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), x))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


def pictures(count, seed):
    g = torch.Generator().manual_seed(seed)
    centres = torch.rand(count, 2, 1, 1, generator=g)
    y, x = torch.meshgrid(torch.linspace(0, 1, 64), torch.linspace(0, 1, 64), indexing="ij")
    return torch.exp(-((x - centres[:, :1]) ** 2 + (y - centres[:, 1:]) ** 2) / 0.02)


def main(args):
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(args.seed, verbose=False)
    model = Autoencoder()
    training = DataLoader(TensorDataset(pictures(128, 1)), batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    validation = DataLoader(TensorDataset(pictures(32, 2)), batch_size=args.batch_size, num_workers=args.workers)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0, deterministic=True)
    trainer.fit(model, training, validation)
    for step, loss in enumerate(model.seen):
        print(f"step {step}: loss {loss}")
    print("val_loss", trainer.callback_metrics["val_loss"].item())
    torch.save({"model": model.state_dict(), "optimizer": trainer.optimizers[0].state_dict(), "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", default="autoencoder.pt")
    main(p.parse_args())
