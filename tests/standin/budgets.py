"""How much a GPU may be made to wait. Whoever lowers a number here keeps it low; raising one needs a reason.

Measured with bfloat16. Launches of a micro-batch are those of 6 + 6 layers; they depend neither on the width nor on
the number of tokens.
"""

MICRO_BATCH_LAUNCHES = {
    "sentence_transformer": 1111,
    "document_transformer": 1111,
    "concatenation": 1183,
    "g_transformer": 1439,
    "g_transformer_no_target_context": 1343,
    "g_transformer_no_context": 1111,
    "g_transformer_no_language_locality": 1247,
    "g_transformer_no_locality": 1111,
    "g_transformer_only_group": 1111,
    "g_transformer_only_global": 1111,
    "rst_serial": 1325,
    "rst_parallel": 1463,
    "rst_mix": 1451,
    "global_context": 2127,
}
"""Kernels of forward and backward of the first micro-batch of an update, by preset."""
UPDATE_SYNCS = 0
"""How often the host waits for the device in an update that is not logged."""
UPDATE_COPIES = 1
"""Copies to the device in an update of one micro-batch."""
UPDATE_PAGEABLE_COPIES = 0
"""Those that the host waits for, since their memory is not pinned or they were not asked to be asynchronous."""
STEPS_PER_SYNC = 16
"""Steps of a search for each time that the host waits."""
SEARCH_COPIES = 22
"""Copies to the device in the search of a batch, however many steps it has."""
