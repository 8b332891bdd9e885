"""COMET (Rei et al. 2022), computed by the program `comet-score` in a separate environment.

The program reads plain files with one line per sentence, and writes the scores as JSON. In the document variant
(Vernikos et al. 2022), previous sentences are prepended: source sentences to a source sentence, and reference sentences
to both references and hypotheses.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.checksums import check_planned
from docmt.errors import UserError
from docmt.evaluation.external_programs import find_program, missing_row, run_program
from docmt.evaluation.metrics import COMET, CometSettings
from docmt.evaluation.score_rows import ScoreRow, group_means
from docmt.evaluation.scoring import TranslatedTest
from docmt.files import read_json, write_lines
from docmt.gpu_locks import claim_gpus, first_gpu

if TYPE_CHECKING:
    from docmt.models.gpus import DeviceMeter

SEPARATOR = " </s> "


def score_comet(test: TranslatedTest, settings: CometSettings) -> list[ScoreRow]:
    """Return the mean segment score, times 100. Empty for hypotheses that are not aligned by sentence.

    If the program is missing, the row has no value, as for all metrics.
    """
    if not test.is_aligned:
        return []
    program = find_program(settings.program)
    if program is None:
        reason = (
            f"evaluation.comet.program: {settings.program!r} not found: create the environment from "
            "workflow/envs/comet.yml, and set this key to the path of its comet-score"
        )
        return [missing_row(COMET, reason)]
    if not Path(settings.model_file).is_file():
        raise UserError(f"evaluation.comet.checkpoint: {settings.model_file}: no such file")
    check_planned(Path(settings.model_file))
    source = test.read_source()
    # Reference sentences precede hypotheses (Vernikos et al. 2022), so that earlier errors do not count twice.
    texts = {
        "source": with_context(source, source, test.documents, settings.context),
        "hypothesis": with_context(test.sentences, test.reference, test.documents, settings.context),
        "reference": with_context(test.reference, test.reference, test.documents, settings.context),
    }
    scores = _run(program, texts, settings)
    signature = f"model:{Path(settings.checkpoint).name}|context:{settings.context}|mean of segments × 100"
    row: ScoreRow = {
        "metric": COMET,
        "value": 100 * sum(scores) / len(scores),
        "n": len(scores),
        "signature": signature,
    }
    return [{**row, "groups": group_means([100 * score for score in scores], test.documents)}]


def claim_device(settings: CometSettings) -> "DeviceMeter":
    """Reserve a GPU for the program if it uses one, and return a meter of its device."""
    from docmt.models.gpus import DeviceMeter

    claim_gpus(settings.gpus)
    if settings.gpus:
        return DeviceMeter("cuda", gpu=first_gpu() or "GPU-unknown")
    return DeviceMeter("cpu")


def with_context(
    sentences: Sequence[str], context: Sequence[str], documents: Sequence[str], n_before: int
) -> list[str]:
    """Prepend up to `n_before` preceding sentences of `context` from the same document to each sentence."""
    joined = []
    for i, sentence in enumerate(sentences):
        parts = []
        for j in range(max(i - n_before, 0), i):
            if documents[j] == documents[i]:
                parts.append(context[j])
        parts.append(sentence)
        joined.append(SEPARATOR.join(parts))
    return joined


def _run(program: str, texts: dict[str, list[str]], settings: CometSettings) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="docmt-comet-") as folder:
        command = [program]
        for option, name in (("-s", "source"), ("-t", "hypothesis"), ("-r", "reference")):
            path = Path(folder, name)
            # The program splits at all Unicode line ends.
            write_lines(path, (" ".join(line.splitlines()) for line in texts[name]), checksum=False)
            command += [option, str(path)]
        scores_path = Path(folder, "scores.json")
        command += ["--to_json", str(scores_path), "--model", settings.model_file]
        command += ["--batch_size", str(settings.batch_size), "--gpus", str(settings.gpus)]
        if settings.context:
            command.append("--enable-context")
        run_program(command, name=COMET)
        content = read_json(scores_path)
    # Newer versions write the segments under the name of the hypotheses file.
    if isinstance(content, dict) and len(content) == 1:
        (content,) = content.values()
    try:
        scores = [float(segment[COMET]) for segment in content]
    except (KeyError, TypeError, ValueError):
        raise UserError("COMET wrote scores in an unknown format: use unbabel-comet 2.2") from None
    if len(scores) != len(texts["source"]):
        raise UserError(f"COMET wrote {len(scores)} scores for {len(texts['source'])} sentences")
    return scores
