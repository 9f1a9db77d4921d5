"""Classical measures of disclosure in equivalence classes, from counts without noise.

An *equivalence class* is the set of records with equal quasi-identifiers. Counts are (N, K): the records of
each of N non-empty classes with each of K labels of one sensitive column.

Sources: A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam (2007), "l-diversity: privacy beyond
k-anonymity"; N. Li, T. Li, S. Venkatasubramanian (2007), "t-closeness: privacy beyond k-anonymity and
l-diversity".
"""

from __future__ import annotations

import numpy as np

from pdprivacy.types import Floats, Integers


def distinct_labels(counts: Integers) -> Integers:
    """Return the number of labels that occur in each class.

    >>> distinct_labels(np.array([[5, 0, 0], [2, 1, 1]])).tolist()
    [1, 3]
    """
    return np.asarray(np.count_nonzero(counts, axis=1), dtype=np.int64)


def entropy_labels(counts: Integers) -> Floats:
    """Return e to the entropy of the labels of each class.

    So many labels of equal frequency have this entropy. A class is entropy l-diverse if it is l or more
    (Machanavajjhala et al. 2007).

    >>> entropy_labels(np.array([[5, 0, 0], [2, 2, 0], [2, 1, 1]])).round(2).tolist()
    [1.0, 2.0, 2.83]
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.exp(-(shares * logarithms).sum(axis=1)))


def equal_distances(counts: Integers) -> Floats:
    """Return the earth mover's distance of each class from all records, if any two labels are 1 apart.

    It is half the l1 distance of the shares (the equal distance of Li et al. 2007).

    >>> equal_distances(np.array([[2, 0, 0], [0, 1, 1]])).tolist()
    [0.5, 0.5]
    """
    moved = counts / counts.sum(axis=1, keepdims=True) - counts.sum(axis=0) / counts.sum()
    return np.asarray(np.abs(moved).sum(axis=1) / 2)


def ordered_distances(counts: Integers) -> Floats:
    """Return the earth mover's distance of each class from all records, for two or more labels in order.

    The distance of two labels is that of their ranks, and 1 from first to last. The earth mover's distance is
    then the mean absolute difference of the cumulative shares at the first K - 1 labels (the ordered distance
    of Li et al. 2007).

    >>> ordered_distances(np.array([[2, 0, 0], [0, 1, 1]])).tolist()
    [0.375, 0.375]
    """
    below = np.cumsum(counts[:, :-1], axis=1) / counts.sum(axis=1, keepdims=True)
    everywhere = np.cumsum(counts.sum(axis=0)[:-1]) / counts.sum()
    return np.asarray(np.abs(below - everywhere).mean(axis=1))
