"""`docmt text`: convert sentences to subwords and back, stage by stage. Output has one line per input line."""

import logging
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from docmt.commands import CommandGroup, Jobs, OutFile, SrcLang, TgtLang, option, settings_at
from docmt.errors import UserError
from docmt.files import atomic_writer, write_json
from docmt.text.settings import TextSettings

log = logging.getLogger(__name__)
commands = CommandGroup("text")
Settings = Annotated[TextSettings, settings_at("text")]
Input = Annotated[Path, option("file to read, one sentence per line.")]
Inputs = Annotated[list[Path], option("files to read.", name=("--inputs", "--input"))]
PipelineFile = Annotated[Path, option("file written by `docmt text save-pipeline`.")]


@commands.command
def tokenize(*, settings: Settings = TextSettings(), lang: str, input: Input, out: OutFile, jobs: Jobs = 1) -> None:
    """Normalize and tokenize a file.

    Example:
        docmt text tokenize --lang de --input train.de --out train.tok.de --jobs 4

    Args:
        lang: language code, such as `en`.
    """
    from docmt.text.text_files import map_file, tokenize_lines
    from docmt.text.tokenizer import check_language

    check_language(lang, settings.tokenization)
    options = settings.tokenizer_options()
    map_file(partial(tokenize_lines, lang=lang, **options), input, out, jobs=jobs, label=f"tokenize {lang}")


@commands.command
def learn_truecaser(*, settings: Settings = TextSettings(), inputs: Inputs, out: OutFile, jobs: Jobs = 1) -> None:
    """Train a truecaser on tokenized text. With `truecase: false`, it changes nothing.

    Example:
        docmt text learn-truecaser --inputs train.tok.de --out truecaser.de.json

    """
    from docmt.processes import map_chunks
    from docmt.text.text_files import CHUNK_LINES, read_all
    from docmt.text.truecaser import Truecaser, count_forms

    if not settings.truecase:
        log.info("truecase is false: the truecaser changes nothing")
        Truecaser(None).save(out)
        return
    forms: Counter[str] = Counter()
    for counted in map_chunks(count_forms, read_all(inputs, label="learn truecaser"), size=CHUNK_LINES, jobs=jobs):
        forms.update(counted)
    truecaser = Truecaser.learn(forms)
    log.info("learned %d words that are lower-case inside sentences", len(truecaser.words or ()))
    truecaser.save(out)


@commands.command
def truecase(*, model: Path, input: Input, out: OutFile, jobs: Jobs = 1) -> None:
    """Truecase the first word of every line.

    Example:
        docmt text truecase --model truecaser.de.json --input train.tok.de --out train.true.de

    Args:
        model: truecaser file.
    """
    from docmt.text.text_files import map_file, map_tokens
    from docmt.text.truecaser import Truecaser

    map_file(partial(map_tokens, Truecaser.load(model).truecase), input, out, jobs=jobs, label="truecase")


@commands.command
def learn_bpe(
    *,
    settings: Settings = TextSettings(),
    inputs: Inputs,
    out: OutFile,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
) -> None:
    """Learn BPE or SentencePiece jointly on several files, or use the subwords of a published model.

    Example:
        docmt text learn-bpe --settings '{"bpe_merges":8000}' --inputs train.true.en train.true.de --out bpe.codes

    Args:
        src_lang: source language code, for a published model.
        tgt_lang: target language code, for a published model.
    """
    from docmt.text.published_text import PublishedText
    from docmt.text.subwords import learn_merges, learn_sentencepiece
    from docmt.text.text_files import read_all

    if settings.pretrained is not None:
        if src_lang is None or tgt_lang is None:
            raise UserError("a published model needs the languages: pass --src-lang and --tgt-lang")
        codes = PublishedText.read(Path(settings.pretrained)).subword_codes((src_lang, tgt_lang))
    elif settings.tokenization == "sentencepiece":
        # Here and below, both sides together: joint subwords, so that names are split alike in both languages.
        codes = learn_sentencepiece(read_all(inputs, label="count words"), size=settings.sentencepiece_size)
    else:
        lines = read_all(inputs, label="count words")
        codes = learn_merges(lines, merges=settings.bpe_merges, min_frequency=settings.bpe_min_frequency)
        n_merges = codes.count("\n") - 1  # the first line is a header
        if n_merges < settings.bpe_merges:
            log.warning("the text yields only %d of %d BPE merges (bpe_merges)", n_merges, settings.bpe_merges)
    with atomic_writer(out) as file:
        file.write(codes)


@commands.command
def apply_bpe(*, codes: Path, lang: str = "*", input: Input, out: OutFile, jobs: Jobs = 1) -> None:
    """Split tokens into subwords.

    Example:
        docmt text apply-bpe --codes bpe.codes --input train.true.de --out train.bpe.de

    Args:
        codes: file of BPE merges, or of SentencePiece models.
        lang: language code, if there is one model per language.
    """
    from docmt.text.subwords import read_codes, subword_model
    from docmt.text.text_files import map_file, map_tokens

    model = subword_model(read_codes(codes), lang)
    map_file(partial(map_tokens, model.split), input, out, jobs=jobs, label="apply BPE")


@commands.command
def learn_vocabulary(
    *,
    inputs: Inputs,
    out: OutFile,
    tags: list[str] | None = None,
    pretrained: Path | None = None,
    keep: Literal["all", "seen"] = "all",
    src_lang: str | None = None,
    tgt_lang: str | None = None,
) -> None:
    """Build a vocabulary from subword files, or use a published model's vocabulary.

    Example:
        docmt text learn-vocabulary --inputs train.bpe.en train.bpe.de --out vocabulary.txt

    Args:
        tags: languages for cross-task training. Adds [MASK1], [MASK2] and one tag per language.
        pretrained: folder with a published model whose vocabulary is used.
        keep: published model's pieces to keep.
        src_lang: source language code, for a published model.
        tgt_lang: target language code, for a published model.
    """
    from docmt.text.published_text import PublishedText
    from docmt.text.text_files import read_all
    from docmt.text.vocabulary import Vocabulary, extra_specials

    if pretrained is not None:
        if src_lang is None or tgt_lang is None:
            raise UserError("--pretrained: also pass --src-lang and --tgt-lang")
        subwords = None
        if keep == "seen":
            subwords = set()
            for line in read_all(inputs, label="vocabulary"):
                subwords.update(line.split())
        vocabulary = PublishedText.read(pretrained).vocabulary((src_lang, tgt_lang), selection=subwords)
        log.info("%d symbols from %s", len(vocabulary), pretrained)
    else:
        if keep == "seen":
            raise UserError("--keep seen: a vocabulary from files only has seen pieces: pass --pretrained, too")
        sentences = map(str.split, read_all(inputs, label="vocabulary"))
        vocabulary = Vocabulary.from_sentences(sentences, extras=extra_specials(tags) if tags else ())
        if not any(vocabulary.counts):
            raise UserError(f"no text to learn a vocabulary from: {', '.join(map(str, inputs))}")
        n_special = len(vocabulary) - sum(map(bool, vocabulary.counts))
        log.info("%d symbols, %d of them special", len(vocabulary), n_special)
    vocabulary.save(out)


@commands.command
def save_pipeline(
    *,
    settings: Settings = TextSettings(),
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    truecasers: tuple[Path, Path],
    codes: Path,
    out: OutFile,
) -> None:
    """Save settings, truecasers and subword model in one file, the text pipeline.

    Example:
        docmt text save-pipeline --src-lang en --tgt-lang de --truecasers truecaser.en.json truecaser.de.json
        --codes bpe.codes --out pipeline.json

    Args:
        truecasers: truecaser files for source and target.
        codes: file of BPE merges.
    """
    from docmt.text.pipeline import TextPipeline
    from docmt.text.subwords import read_codes
    from docmt.text.truecaser import Truecaser

    languages = (src_lang, tgt_lang)
    loaded = dict(zip(languages, map(Truecaser.load, truecasers), strict=True))
    TextPipeline(settings, languages=languages, truecasers=loaded, codes=read_codes(codes)).save(out)


@commands.command
def restore(*, pipeline: PipelineFile, lang: str, input: Input, out: OutFile) -> None:
    """Restore sentences from subwords.

    Example:
        docmt text restore --pipeline pipeline.json --lang de --input test.bpe.de --out test.de

    Args:
        lang: language code.
    """
    from docmt.files import write_lines
    from docmt.text.pipeline import TextPipeline
    from docmt.text.text_files import read_all

    restorer = TextPipeline.load(pipeline)
    lines = read_all([input], label=f"restore {lang}")
    write_lines(out, (restorer.restore(line.split(), lang=lang) for line in lines))


@commands.command
def count_roundtrip(*, pipeline: PipelineFile, inputs: list[Path], out: OutFile) -> None:
    """Count the lines that are restored exactly from subwords.

    Example:
        docmt text count-roundtrip --pipeline pipeline.json --inputs train.en train.de --out roundtrip.json

    Args:
        inputs: plain text files. The ends of their names are languages.
        out: JSON file to write.
    """
    from docmt.text.pipeline import TextPipeline
    from docmt.text.roundtrip import measure_files

    results = measure_files(TextPipeline.load(pipeline), inputs)
    write_json(out, results)
    for lang, result in results["languages"].items():
        print(f"{lang}: {result['restored']} of {result['lines']} lines restored")
