"""scikit-learn's handwritten digits (they come with the package) and how the ranks share them."""

import numpy
from sklearn.datasets import load_digits

BATCH = 128  # of all ranks together: the same for any number of them, so that they all train the same thing
EPOCHS = 12


def load():
    """Pictures of 8x8 pixels between 0 and 1, and the digits that they show: the first 1,500 for training, the rest for the
    test."""
    digits = load_digits()
    pixels = (digits.data / 16).astype(numpy.float32)
    return (pixels[:1500], digits.target[:1500]), (pixels[1500:], digits.target[1500:])


def batches(count, rank, size):
    """For each step, the indices of this rank's part of the batch. All ranks shuffle alike."""
    if BATCH % size:
        raise SystemExit(f"{size} ranks cannot share a batch of {BATCH} evenly: choose a number that divides it")
    shuffle, part = numpy.random.default_rng(7), BATCH // size
    for _ in range(EPOCHS):
        order = shuffle.permutation(count)
        for first in range(0, count - BATCH + 1, BATCH):
            mine = first + rank * part
            yield order[mine : mine + part]
