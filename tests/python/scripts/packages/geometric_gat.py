# SPDX-License-Identifier: Apache-2.0
"""A graph attention network of PyTorch Geometric on a random graph whose classes are communities. Needs
torch_geometric."""
import argparse

import torch
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv
from torch_geometric.utils import stochastic_blockmodel_graph


class Net(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first = GATv2Conv(features, hidden, heads=4, dropout=0.2)
        self.second = GATv2Conv(hidden * 4, hidden, heads=4, dropout=0.2)
        self.last = GATv2Conv(hidden * 4, classes, heads=1, concat=False)

    def forward(self, x, edges):
        x = F.dropout(F.elu(self.first(x, edges)), 0.3, self.training)
        x = F.dropout(F.elu(self.second(x, edges)), 0.3, self.training)
        return self.last(x, edges)


def graph(nodes, classes):
    near, far = 24 / nodes, 2 / nodes
    edges = stochastic_blockmodel_graph([nodes // classes] * classes, torch.full((classes, classes), far).fill_diagonal_(near))
    y = torch.arange(classes).repeat_interleave(nodes // classes)
    return Data(x=torch.randn(nodes, 64) + 0.3 * F.one_hot(y, 64), edge_index=edges, y=y)


def main(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # on two, sums over edges differ from run to run in plain torch already
    data = graph(args.nodes, 8)
    model = Net(64, 16, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    known = torch.rand(args.nodes) < 0.3
    for epoch in range(args.epochs):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[known], data.y[known])
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}: loss {loss.item()}")
    model.eval()
    with torch.no_grad():
        hits = (model(data.x, data.edge_index).argmax(1) == data.y)[~known]
    print(f"accuracy {hits.float().mean().item()}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, args.out)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--nodes", type=int, default=4000)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", default="gat.pt")
    main(p.parse_args())
