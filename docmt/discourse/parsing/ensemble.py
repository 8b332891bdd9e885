"""Several networks as one: classifiers of equal shape, computed side by side.

Shapes: M members; the others as in `neural_model.py`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from docmt.discourse.parsing.neural_network import ClassifierCache, EduInputs, ParserNetwork, SpanClassifier


class EnsembleClassifier:
    """The classifiers of all members, computed in few operations.

    Greedy parsing calls it once per step with a few rows, so the number of operations decides its speed: weights of all
    members are stacked once, and `baddbmm` runs a layer of all members at a time.
    """

    def __init__(self, members: Sequence[SpanClassifier]) -> None:
        self.members, first = members, members[0]
        self.n_members, self.epsilon = len(members), first.norm.eps
        self.slot_rows, self.feature_rows = first.slot_rows, first.feature_rows
        self.lefts, self.rights = first.lefts, first.rights
        with torch.no_grad():
            self._features = torch.cat([member.features for member in members], dim=1)
            self._widen_MVH = torch.stack([member.widen.weight.T for member in members])
            self._compare_MPH = torch.stack([member.compare.weight.T for member in members])
            self._scale_M1H = torch.stack([member.norm.weight for member in members])[:, None]
            self._shift_M1H = torch.stack([member.norm.bias for member in members])[:, None]
            self._hidden_MHH = torch.stack([member.hidden.weight.T for member in members])
            self._hidden_bias_M1H = torch.stack([member.hidden.bias for member in members])[:, None]
            self._out_MHC = torch.stack([member.out.weight.T for member in members])
            self._out_bias_M1C = torch.stack([member.out.bias for member in members])[:, None]

    def cache(self, encoded: Sequence[Tensor], lengths: Sequence[int]) -> ClassifierCache:
        """Join the caches of all members, side by side in the last dimension, from the EDUs that each has encoded."""
        caches = [member.cache(edus_ER, lengths) for member, edus_ER in zip(self.members, encoded, strict=True)]
        return ClassifierCache(
            torch.cat([cache.slots for cache in caches], dim=1),
            torch.cat([cache.left_EP for cache in caches], dim=1),
            torch.cat([cache.right_EP for cache in caches], dim=1),
            torch.cat([cache.documents_BH for cache in caches], dim=1),
        )

    def log_probabilities(
        self, cache: ClassifierCache, slots_QL: Tensor, values_QF: Tensor, documents_Q: Tensor
    ) -> Tensor:
        """Average the log probabilities of the members, [Q, C]; arguments as for `SpanClassifier`."""
        sums = functional.embedding_bag(self.slot_rows(slots_QL), cache.slots, mode="sum")
        hidden_MQH = self._by_member(sums + cache.documents_BH[documents_Q])
        features = functional.embedding_bag(self.feature_rows(values_QF), self._features, mode="sum")
        hidden_MQH = torch.baddbmm(hidden_MQH, self._by_member(features), self._widen_MVH)
        pairs = cache.left_EP[slots_QL[:, self.lefts]] * cache.right_EP[slots_QL[:, self.rights]]
        pairs_MQP = pairs.unflatten(2, (self.n_members, -1)).permute(2, 0, 1, 3).flatten(2)
        hidden_MQH = torch.baddbmm(hidden_MQH, pairs_MQP, self._compare_MPH)
        hidden_MQH = functional.layer_norm(hidden_MQH, hidden_MQH.shape[2:], eps=self.epsilon)
        hidden_MQH = torch.relu(hidden_MQH * self._scale_M1H + self._shift_M1H)
        hidden_MQH = torch.relu(torch.baddbmm(self._hidden_bias_M1H, hidden_MQH, self._hidden_MHH))
        return torch.baddbmm(self._out_bias_M1C, hidden_MQH, self._out_MHC).log_softmax(-1).mean(0)

    def _by_member(self, side_by_side: Tensor) -> Tensor:
        return side_by_side.unflatten(1, (self.n_members, -1)).transpose(0, 1)


class Ensemble:
    """Networks of equal shape whose log probabilities are averaged."""

    def __init__(self, networks: Sequence[ParserNetwork]) -> None:
        self.networks = tuple(networks)
        self.actions = EnsembleClassifier([network.actions for network in networks])
        self.relations = EnsembleClassifier([network.relations for network in networks])

    def encode(self, inputs: EduInputs) -> list[Tensor]:
        """Encode EDUs with each network, [E, R]."""
        return [network.encoder(inputs) for network in self.networks]
