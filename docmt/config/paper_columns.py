"""Columns for paper tables that are derived from a system's config."""

from docmt.config.schema import Config
from docmt.config.systems import decoding_settings, model_settings, trained_system, training_chain, training_settings
from docmt.training.settings import TrainingSettings

YES, NO = "✓", "✗"


def paper_columns(config: Config, system: str) -> dict[str, str]:
    """Return a system's properties for tables and figures (`PaperColumn`). Missing properties are left out.

    `Bi-sent` and `Mo-doc` are terms from Chen et al. (2021), Table 1. They show whether the system or a previous model
    in its training chain was trained on sentence pairs or monolingual documents. External systems and published models
    have neither.
    """
    row = config.systems[system]
    if row.has_user_output:
        return {}
    if row.is_published:
        if decoding_settings(config, system).context == "joined":
            return {"Input": "windows"}
        return {"Input": "sentences"}
    trainings = [training_settings(config, name) for name in training_chain(config, system)]  # the last one first
    facts = {
        "Bi-sent": NO,
        "Mo-doc": NO,
        "Fine-tuning tasks": ", ".join(trainings[0].tasks),
        "Input": "documents",
        **_shape_facts(config, system, trainings[0]),
    }
    if (
        decoding_settings(config, system).context == "none"
        or model_settings(config, system).sees_single_sentences
        or config.instances[row.instances].max_sentences == 1
    ):
        facts["Input"] = "sentences"
    for training in reversed(trainings):  # the last restoration counts
        if "pairs" in training.tasks:
            facts["Bi-sent"] = YES
        if "restoration" in training.tasks:
            facts["Mo-doc"] = YES
            kinds = {"CA-GSR": training.restoration.gap_ratio, "CA-MSR": training.restoration.mask_ratio}
            facts["Gap ratio"] = f"{100 * training.restoration.gap_ratio:g}%"
            facts["Objective"] = " + ".join(kind for kind, ratio in kinds.items() if ratio) or "none"
    return facts


def _shape_facts(config: Config, system: str, training: TrainingSettings) -> dict[str, str]:
    """Return the properties for figure axes: length, data, size, layers and `drop_rst`."""
    row = config.systems[trained_system(config, system)]
    model = model_settings(config, system)
    facts = {
        "Instance length": str(config.instances[config.systems[system].instances].max_tokens),
        "Size": row.size,
    }
    subset = config.instances[row.instances].subset
    if subset is not None:
        facts["Training instances"] = str(subset)
    mixed = [attention.upper_layers for attention in model.attentions.values() if len(attention.patterns()) > 1]
    if mixed:
        facts["Upper layers"] = str(max(mixed))
    if model.needs_trees:
        facts["drop_rst"] = f"{training.drop_rst:g}"
    return facts
