"""Limits for waiting times of a GPU. If you lower a number here, it must stay low. Raising one needs a reason.

Measured with bfloat16. Launches per micro-batch are for 6 + 6 layers. They depend neither on the width nor on the
number of tokens.
"""

MICRO_BATCH_LAUNCHES = {
    "sentence_transformer": 741,
    "document_transformer": 741,
    "document_transformer_aligned": 741,
    "concatenation": 849,
    "lstm_transformer": 1005,
    "flat_transformer": 805,
    "hybrid_context": 1355,
    "g_transformer": 925,
    "g_transformer_no_target_context": 869,
    "g_transformer_no_source_context": 797,
    "g_transformer_no_context": 741,
    "g_transformer_no_language_locality": 813,
    "g_transformer_no_locality": 741,
    "g_transformer_only_group": 741,
    "g_transformer_only_global": 741,
    "rst_serial": 859,
    "rst_parallel": 961,
    "rst_mix": 961,
    "global_context": 1595,
    "doct": 1635,
    "han_encoder": 912,
    "han": 1083,
    "san": 984,
    "cadec": 2082,
}
"""Forward and backward kernels in the first micro-batch of an update, by preset.

In HAN and SAN, every dropout inside a context module takes two kernels.
Attention returns the gradients of queries, keys and values in one tensor. This costs one kernel in most layers, at most
2 % of all, and saves several where the update is compiled.
"""
UPDATE_SYNCS = 0  # how often the host waits for the device in an update that is not logged
UPDATE_COPIES = 1  # copies to the device in an update of one micro-batch
UPDATE_PAGEABLE_COPIES = 0
"""The host waits for copies if their memory is not pinned or they are not asynchronous."""
STEPS_PER_SYNC = 16  # steps of a search for each time that the host waits
SEARCH_COPIES = 22
"""Copies to the device in the search for a batch, for any number of steps. A second decoder needs as many again."""
