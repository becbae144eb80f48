# SPDX-License-Identifier: Apache-2.0
"""Word-level language model: LSTM, truncated backpropagation through time, SGD written by hand."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return F.log_softmax(decoded.view(-1, self.ntoken), dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


def make_corpus(ntoken, length):
    """The next word is one of four that the current one allows."""
    following = torch.randint(0, ntoken, (ntoken, 4))
    choices = torch.randint(0, 4, (length,)).tolist()
    words, table = [0], following.tolist()
    for choice in choices:
        words.append(table[words[-1]][choice])
    return torch.tensor(words)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


def evaluate(model, source, args):
    model.eval()
    total_loss = 0.
    hidden = model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i, args.bptt)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * F.nll_loss(output, targets).item()
    return total_loss / (len(source) - 1)


def train(model, source, args, lr):
    model.train()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, source.size(0) - 1, args.bptt)):
        data, targets = get_batch(source, i, args.bptt)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = F.nll_loss(output, targets)
        loss.backward()
        # `clip_grad_norm` helps prevent the exploding gradient problem in RNNs / LSTMs.
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        print("| {:3d} batches | lr {} | loss {!r} | ppl {!r}".format(batch, lr, loss.item(), math.exp(loss.item())))


parser = argparse.ArgumentParser(description="RNN language model")
parser.add_argument("--nhid", type=int, default=256)
parser.add_argument("--ntoken", type=int, default=3000)
parser.add_argument("--batch-size", type=int, default=48)
parser.add_argument("--bptt", type=int, default=35)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--lr", type=float, default=20)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--save", "--out", dest="save", default="model.pt")


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    corpus = make_corpus(args.ntoken, args.batch_size * (4 * args.bptt + 20))  # the last part is shorter than bptt
    train_data, val_data = batchify(corpus, args.batch_size), batchify(corpus[:2000], 10)
    model = RNNModel(args.ntoken, args.nhid, args.nhid, 2, dropout=0.2)
    train(model, train_data, args, args.lr)
    print("end of epoch, valid loss {!r}".format(evaluate(model, val_data, args)))
    torch.save({"model": model.state_dict(), "rng": torch.get_rng_state()}, args.save)


if __name__ == "__main__":
    main()
