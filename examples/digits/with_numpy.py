"""A small network in numpy, trained data-parallel: each rank computes the gradients of its part of a batch, and one all-reduce
makes their mean the same on all ranks.

    python examples/digits/with_numpy.py                   # 4 processes beside 1, and whether they agree
    mpirun -np 4 python examples/digits/with_numpy.py      # as a part of a job: trains and says how well
"""

import job  # first: it says how many threads numpy may use
import numpy

import data
import hccl

HIDDEN, RATE, MOMENTUM = 64, 0.15, 0.9


class Network:
    """64 pixels, a hidden layer, 10 digits. All weights are views of one vector, and so are all gradients, which makes one
    message of them."""

    shapes = ((64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,))

    def __init__(self):
        sizes = [int(numpy.prod(shape)) for shape in self.shapes]
        self.weights, self.gradients = numpy.zeros(sum(sizes), numpy.float32), numpy.zeros(sum(sizes), numpy.float32)
        ends = numpy.cumsum(sizes)[:-1]
        self.w1, self.b1, self.w2, self.b2 = (v.reshape(s) for v, s in zip(numpy.split(self.weights, ends), self.shapes))
        self.g1, self.h1, self.g2, self.h2 = (v.reshape(s) for v, s in zip(numpy.split(self.gradients, ends), self.shapes))
        start = numpy.random.default_rng(3)
        for w in (self.w1, self.w2):
            w[:] = start.normal(0, 1 / numpy.sqrt(w.shape[0]), w.shape)

    def forward(self, pixels):
        hidden = numpy.maximum(pixels @ self.w1 + self.b1, 0)
        return hidden, hidden @ self.w2 + self.b2

    def backward(self, pixels, digits):
        """Leaves the gradients of the mean cross-entropy."""
        hidden, scores = self.forward(pixels)
        error = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[numpy.arange(len(digits)), digits] -= 1
        error /= len(digits)
        self.g2[:], self.h2[:] = hidden.T @ error, error.sum(axis=0)
        below = (error @ self.w2.T) * (hidden > 0)
        self.g1[:], self.h1[:] = pixels.T @ below, below.sum(axis=0)


def train(comm):
    """Trains, alone if there is no communicator; the weights, and the share of the test's digits that are told right."""
    (pixels, digits), (test_pixels, test_digits) = data.load()
    network = Network()
    step = numpy.zeros_like(network.weights)
    rank, size = (comm.rank, comm.size) if comm else (0, 1)
    if comm:
        comm.broadcast(network.weights)  # all start alike by their seed; a program that does not know that would do this
    for part in data.batches(len(pixels), rank, size):
        network.backward(pixels[part], digits[part])
        if comm:
            comm.all_reduce(network.gradients, op=hccl.AVG)
        step *= MOMENTUM
        step -= RATE * network.gradients
        network.weights += step
    told = network.forward(test_pixels)[1].argmax(axis=1)
    return network.weights, float((told == test_digits).mean())


if __name__ == "__main__":
    job.main(train, "numpy")
