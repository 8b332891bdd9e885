"""Limits for waiting times of a GPU. If you lower a number here, it must stay low. Raising one needs a reason.

Measured with bfloat16. Launches per micro-batch are for 6 + 6 layers. They depend neither on the width nor on the
number of tokens.
"""

MICRO_BATCH_LAUNCHES = {
    "sentence_transformer": 735,
    "document_transformer": 735,
    "document_transformer_aligned": 735,
    "concatenation": 843,
    "lstm_transformer": 993,
    "flat_transformer": 791,
    "hybrid_context": 1333,
    "g_transformer": 917,
    "g_transformer_no_target_context": 861,
    "g_transformer_no_source_context": 791,
    "g_transformer_no_context": 735,
    "g_transformer_no_language_locality": 805,
    "g_transformer_no_locality": 735,
    "g_transformer_only_group": 735,
    "g_transformer_only_global": 735,
    "rst_serial": 851,
    "rst_parallel": 953,
    "rst_mix": 953,
    "global_context": 1583,
    "doct": 1617,
    "han_encoder": 905,
    "han": 1075,
    "san": 978,
    "cadec": 2040,
}
"""Forward and backward kernels in the first micro-batch of an update, by preset.

HAN and SAN have two kernels more for every dropout that the authors' code has and docmt's models lacked before.
"""
UPDATE_SYNCS = 0  # how often the host waits for the device in an update that is not logged
UPDATE_COPIES = 1  # copies to the device in an update of one micro-batch
UPDATE_PAGEABLE_COPIES = 0
"""The host waits for copies if their memory is not pinned or they are not asynchronous."""
STEPS_PER_SYNC = 16  # steps of a search for each time that the host waits
SEARCH_COPIES = 22
"""Copies to the device in the search for a batch, for any number of steps. A second decoder needs as many again."""
