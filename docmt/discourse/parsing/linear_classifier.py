"""Linear classifiers over named features.

Shapes: F features, C classes, Q instances.
"""

import math
import warnings
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

from docmt.discourse.parsing.settings import LinearSettings


@dataclass(frozen=True)
class LinearClassifier:
    """One weight vector per class.

    An instance is the vector of its feature counts, divided by its Euclidean length; features without weights
    contribute to the length too.
    """

    rows: dict[str, int]  # the row of each feature that has weights
    weights_FC: np.ndarray  # float32
    bias_C: np.ndarray  # float32
    classes: tuple[str, ...]  # names

    def scores(self, features: Sequence[str]) -> np.ndarray:
        """Compute the decision values of an instance, float32 [C]."""
        rows = [row for feature in features if (row := self.rows.get(feature)) is not None]
        length = math.sqrt(sum(count * count for count in Counter(features).values()))
        return self.weights_FC[rows].sum(axis=0) / max(length, 1.0) + self.bias_C

    def to_dict(self) -> dict[str, Any]:
        return {
            "features": sorted(self.rows, key=self.rows.__getitem__),
            "weights": torch.from_numpy(self.weights_FC),
            "bias": torch.from_numpy(self.bias_C),
            "classes": list(self.classes),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        """Invert `to_dict`. Raises ValueError when the sizes do not fit each other."""
        rows = {feature: row for row, feature in enumerate(value["features"])}
        weights_FC, bias_C = value["weights"].numpy(), value["bias"].numpy()
        if weights_FC.shape != (len(rows), len(value["classes"])) or bias_C.shape != (len(value["classes"]),):
            raise ValueError("weights do not match features and classes")
        return cls(rows, weights_FC, bias_C, tuple(value["classes"]))


class Instances:
    """Training instances. Features are numbered in order of appearance; `matrix` numbers them by sorted names."""

    def __init__(self) -> None:
        # Arrays of machine integers: a treebank has millions of feature values, too many for lists of objects.
        self.numbers: dict[str, int] = {}
        self.columns, self.counts, self.ends = array("i"), array("i"), array("q", [0])
        self.lengths: list[float] = []
        self.labels: list[str] = []

    def add(self, features: Iterable[str], label: str) -> None:
        counted = Counter(features)
        for feature, count in counted.items():
            self.columns.append(self.numbers.setdefault(feature, len(self.numbers)))
            self.counts.append(count)
        self.ends.append(len(self.columns))
        self.lengths.append(math.sqrt(sum(count * count for count in counted.values())))
        self.labels.append(label)

    def matrix(self, *, min_count: int) -> tuple[Any, list[str]]:
        """Build the sparse matrix, float64 [Q, F], and the names of its columns, sorted.

        Features of fewer than `min_count` instances are left out.
        """
        from scipy.sparse import csr_matrix

        seen = np.bincount(np.asarray(self.columns), minlength=len(self.numbers))
        names = sorted(name for name, number in self.numbers.items() if seen[number] >= min_count)
        place = np.full(len(self.numbers), -1)
        place[[self.numbers[name] for name in names]] = np.arange(len(names))
        # Divided by the lengths before rare features go: in `LinearClassifier.scores`, too, they add to the length.
        values = np.asarray(self.counts) / np.repeat(self.lengths, np.diff(self.ends))
        columns = place[np.asarray(self.columns)]
        kept = columns >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[np.asarray(self.ends)]
        matrix = csr_matrix((values[kept], columns[kept], ends), shape=(len(self.labels), len(names)))
        matrix.sort_indices()
        return matrix, names


def fit(instances: Instances, settings: LinearSettings) -> LinearClassifier:
    """Train one support vector machine per class against all others (scikit-learn's LinearSVC).

    With a single class, the classifier is constant.
    """
    classes = tuple(sorted(set(instances.labels)))
    if len(classes) < 2:
        return LinearClassifier(
            {}, np.zeros((0, len(classes)), np.float32), np.zeros(len(classes), np.float32), classes
        )
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    matrix, names = instances.matrix(min_count=settings.min_count)
    limits = {"C": settings.cost, "tol": settings.tolerance, "max_iter": settings.max_iterations}
    # liblinear solves the L1 penalty only in the primal. Without stubs, pyright takes the type of the default of dual.
    dual: Any = False
    machine = LinearSVC(penalty="l1", dual=dual, random_state=0, **limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the limit is a setting
        machine.fit(matrix, np.array(instances.labels))
    weights_CF, bias_C = machine.coef_, np.asarray(machine.intercept_)
    if len(classes) == 2:
        # scikit-learn trains one machine for two classes, with positive values for the second one.
        weights_CF, bias_C = np.concatenate([-weights_CF, weights_CF]), np.concatenate([-bias_C, bias_C])
    # The L1 penalty sets most weights to 0; features without any are not kept.
    used = np.flatnonzero(weights_CF.any(axis=0))
    return LinearClassifier(
        {names[column]: row for row, column in enumerate(used)},
        np.ascontiguousarray(weights_CF[:, used].T, dtype=np.float32),
        bias_C.astype(np.float32),
        tuple(str(name) for name in machine.classes_),
    )
