"""Statistics of instances, as in Table 1 of G-Transformer."""

from collections.abc import Mapping
from typing import Any


def instance_statistics(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return counts and means of one split, from the manifest of its instances."""
    counts = manifest["counts"]
    return {
        "sentences": counts["sentences"],
        "documents": counts["documents"],
        "instances": counts["instances"],
        "sentences_per_instance": round(counts["sentences"] / counts["instances"], 2),
        "tokens_per_instance": round(counts["tokens"] / counts["instances"], 1),
        "longest_instance_tokens": counts["longest_instance_tokens"],
        "sentences_over_limit": counts["sentences_over_limit"],
        "instances_left_out": counts["instances_left_out"],
        "src_unknown_tokens": counts["src_unknown_tokens"],
        "tgt_unknown_tokens": counts["tgt_unknown_tokens"],
    }
