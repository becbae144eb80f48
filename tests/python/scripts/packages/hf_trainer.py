# SPDX-License-Identifier: Apache-2.0
"""A tiny GPT-2 trained by transformers' Trainer: gradient accumulation, clipping, warm-up, evaluation, a checkpoint.

Needs transformers and accelerate.
"""
import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments, set_seed
from transformers.utils import logging


class Text(torch.utils.data.Dataset):
    """Rows of numbers that count up by a step of their own, so that there is something to learn."""

    def __init__(self, rows, length, vocabulary):
        g = torch.Generator().manual_seed(7)
        start, step = torch.randint(0, vocabulary, (rows, 1), generator=g), torch.randint(1, 9, (rows, 1), generator=g)
        self.rows = (start + step * torch.arange(length)) % vocabulary

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main(args):
    set_seed(args.seed)
    logging.disable_progress_bar()  # it prints times, as does the callback below
    config = GPT2Config(vocab_size=512, n_positions=128, n_embd=128, n_layer=4, n_head=4)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder, max_steps=6, per_device_train_batch_size=args.batch_size, per_device_eval_batch_size=args.batch_size,
            gradient_accumulation_steps=2, learning_rate=1e-3, warmup_steps=2, weight_decay=0.01, max_grad_norm=1.0,
            logging_steps=1, eval_strategy="steps", eval_steps=3, save_steps=3, report_to=[], use_cpu=True, seed=args.seed,
            disable_tqdm=True)
        trainer = Trainer(model=GPT2LMHeadModel(config), args=settings, train_dataset=Text(256, 128, 512), eval_dataset=Text(32, 128, 512))
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        for record in trainer.state.log_history:
            print({key: record[key] for key in ("step", "loss", "grad_norm", "learning_rate", "eval_loss") if key in record})
        torch.save({"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict(), "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", default="gpt2.pt")
    main(p.parse_args())
