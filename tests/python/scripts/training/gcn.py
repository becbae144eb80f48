# SPDX-License-Identifier: Apache-2.0
"""Graph convolutions on a random graph with communities, full batch: sparse matrices, and an LBFGS step at the end."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def planted_graph(nodes, classes, degree):
    labels = torch.randint(0, classes, (nodes,))
    order = torch.argsort(labels, stable=True)
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(nodes))
    near = order[(rank.repeat_interleave(degree) + torch.randint(-40, 41, (nodes * degree,))) % nodes]
    source = torch.arange(nodes).repeat_interleave(degree)
    index = torch.stack([torch.cat([source, near]), torch.cat([near, source])])
    adjacency = torch.sparse_coo_tensor(index, torch.ones(index.size(1)), (nodes, nodes)).coalesce()
    degrees = torch.zeros(nodes).index_add_(0, adjacency.indices()[0], adjacency.values()).clamp_(min=1)
    norm = degrees.rsqrt()
    i, j = adjacency.indices()
    return torch.sparse_coo_tensor(adjacency.indices(), adjacency.values() * norm[i] * norm[j], (nodes, nodes)).coalesce(), labels


class GraphConv(nn.Linear):
    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, super().forward(x))


class GCN(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.layers = nn.ModuleList([GraphConv(features, hidden), GraphConv(hidden, hidden), GraphConv(hidden, classes)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(hidden), nn.BatchNorm1d(hidden)])

    def forward(self, x, adjacency):
        for layer, norm in zip(self.layers, self.norms):
            x = F.dropout(F.relu(norm(layer(x, adjacency))), 0.3, self.training)
        return F.log_softmax(self.layers[-1](x, adjacency), dim=1)


parser = argparse.ArgumentParser()
parser.add_argument("--nodes", type=int, default=12000)
parser.add_argument("--hidden", type=int, default=160)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--out", default="gcn.pt")
args = parser.parse_args()

torch.manual_seed(17)
adjacency, labels = planted_graph(args.nodes, 7, 4)
features = F.one_hot(labels, 7).float() @ torch.randn(7, 64) + 2 * torch.randn(args.nodes, 64)
train_idx, test_idx = torch.randperm(args.nodes).split([args.nodes // 10, args.nodes - args.nodes // 10])

model = GCN(64, args.hidden, 7)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(args.epochs):
    model.train()
    optimizer.zero_grad()
    loss = F.nll_loss(model(features, adjacency)[train_idx], labels[train_idx])
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.eval()
        right = (model(features, adjacency).argmax(1)[test_idx] == labels[test_idx]).float().mean()
    print(f"Epoch {epoch:03d} loss {loss.item()} test accuracy {right.item()}")

# The last layer alone is polished with a second-order method.
lbfgs = torch.optim.LBFGS(model.layers[-1].parameters(), max_iter=3)


def closure():
    lbfgs.zero_grad()
    loss = F.nll_loss(model(features, adjacency)[train_idx], labels[train_idx])
    loss.backward()
    return loss


print("LBFGS loss", lbfgs.step(closure).item())
torch.save({"model": model.state_dict(), "adam": optimizer.state_dict(), "rng": torch.get_rng_state()}, args.out)
