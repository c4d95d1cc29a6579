"""The same with torch: an ordinary module on CPU tensors, whose gradients are averaged by HCCL between backward and step.

python examples/digits/with_torch.py
torchrun --nproc-per-node 4 examples/digits/with_torch.py
"""

import job  # first: it says how many threads torch may use
import torch

import data
import hccl


def average(comm, parameters):
    """One all-reduce for each gradient, in one group: they are carried out together, where they lie."""
    with hccl.group():
        for p in parameters:
            comm.all_reduce(p.grad, op=hccl.AVG)


def train(comm):
    """Trains, alone if there is no communicator; the weights, and the share of the test's digits that are told right."""
    torch.manual_seed(3)
    (pixels, digits), (test_pixels, test_digits) = [(torch.from_numpy(a), torch.from_numpy(b)) for a, b in data.load()]
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.15, momentum=0.9)
    rank, size = (comm.rank, comm.size) if comm else (0, 1)
    if comm:
        for p in network.parameters():
            comm.broadcast(p)
    for part in data.batches(len(pixels), rank, size):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(pixels[part]), digits[part]).backward()
        if comm:
            average(comm, network.parameters())
        optimizer.step()
    with torch.no_grad():
        told = network(test_pixels).argmax(dim=1)
        weights = torch.cat([p.flatten() for p in network.parameters()]).numpy()
    return weights, float((told == test_digits).float().mean())


if __name__ == "__main__":
    job.main(train, "torch")
