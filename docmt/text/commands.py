"""`docmt text`: convert sentences to subwords and back, stage by stage."""

from pathlib import Path
from typing import Annotated, Literal

from docmt.commands import CommandGroup, Jobs, OutFile, SrcLang, TgtLang, option, settings_at
from docmt.errors import UserError
from docmt.files import write_json
from docmt.text.settings import TextSettings

commands = CommandGroup("text")
Settings = Annotated[TextSettings, settings_at("text")]
Inputs = Annotated[list[Path], option("files to read.", name=("--inputs", "--input"))]


@commands.command
def tokenize(*, settings: Settings = TextSettings(), lang: str, input: Path, out: OutFile, jobs: Jobs = 1) -> None:
    """Normalize and tokenize a file.

    Example:
        docmt text tokenize --lang de --input train.de --out train.tok.de --jobs 4

    Args:
        lang: language code, such as `en`.
        input: file to read, one sentence per line.
    """
    from docmt.text.text_files import tokenize_file

    tokenize_file(input, out, lang=lang, settings=settings, jobs=jobs)


@commands.command
def learn_truecaser(*, settings: Settings = TextSettings(), inputs: Inputs, out: OutFile, jobs: Jobs = 1) -> None:
    """Learn from tokenized files how words are written inside sentences.

    Example:
        docmt text learn-truecaser --inputs train.tok.de --out truecaser.de.json

    """
    from docmt.text.text_files import learn_truecaser_file

    learn_truecaser_file(inputs, out, settings=settings, jobs=jobs)


@commands.command
def truecase(*, model: Path, input: Path, out: OutFile, jobs: Jobs = 1) -> None:
    """Write the first word of a line as inside a sentence.

    Example:
        docmt text truecase --model truecaser.de.json --input train.tok.de --out train.true.de

    Args:
        model: truecaser file.
        input: file to read, one sentence per line.
    """
    from docmt.text.text_files import truecase_file

    truecase_file(input, out, model=model, jobs=jobs)


@commands.command
def learn_bpe(
    *,
    settings: Settings = TextSettings(),
    inputs: Inputs,
    out: OutFile,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
) -> None:
    """Learn BPE merges, or SentencePiece, jointly on several files.

    Example:
        docmt text learn-bpe --settings '{"bpe_merges":8000}' --inputs train.true.en train.true.de --out bpe.codes

    Args:
        src_lang: source language code, for a published model.
        tgt_lang: target language code, for a published model.
    """
    from docmt.text.text_files import learn_bpe_file

    learn_bpe_file(inputs, out, settings=settings, languages=(src_lang, tgt_lang))


@commands.command
def apply_bpe(*, codes: Path, lang: str = "*", input: Path, out: OutFile, jobs: Jobs = 1) -> None:
    """Split tokens into subwords.

    Example:
        docmt text apply-bpe --codes bpe.codes --input train.true.de --out train.bpe.de

    Args:
        codes: file of BPE merges, or of SentencePiece models.
        lang: language code, where each language has its model.
        input: file to read, one sentence per line.
    """
    from docmt.text.text_files import apply_bpe_file

    apply_bpe_file(input, out, codes=codes, lang=lang, jobs=jobs)


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
    """Learn a vocabulary jointly on several files of subwords, or take the vocabulary of a published model.

    Example:
        docmt text learn-vocabulary --inputs train.bpe.en train.bpe.de --out vocabulary.txt

    Args:
        tags: for cross-task training: add [MASK1], [MASK2] and a tag for each of these languages.
        pretrained: folder of a published model whose symbols are taken.
        keep: which of its pieces.
        src_lang: source language code, for a published model.
        tgt_lang: target language code, for a published model.
    """
    from docmt.text.text_files import learn_vocabulary_file, published_vocabulary_file

    if pretrained is None:
        learn_vocabulary_file(inputs, out, tags=tags or [])
    elif src_lang is None or tgt_lang is None:
        raise UserError("--pretrained: give --src-lang and --tgt-lang too")
    else:
        published_vocabulary_file(inputs, out, folder=pretrained, languages=(src_lang, tgt_lang), keep=keep)


@commands.command
def pack(
    *,
    settings: Settings = TextSettings(),
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    truecasers: tuple[Path, Path],
    codes: Path,
    out: OutFile,
) -> None:
    """Write settings, truecasers and merges to one file.

    Example:
        docmt text pack --src-lang en --tgt-lang de --truecasers truecaser.en.json truecaser.de.json --codes bpe.codes
        --out pipeline.json

    Args:
        truecasers: truecaser files of source and target.
        codes: file of BPE merges.
    """
    from docmt.text.text_files import pack_pipeline

    languages = (src_lang, tgt_lang)
    pack_pipeline(out, settings=settings, languages=languages, truecasers=truecasers, codes=codes)


@commands.command
def restore(*, pipeline: Path, lang: str, input: Path, out: OutFile) -> None:
    """Restore sentences from subwords.

    Example:
        docmt text restore --pipeline pipeline.json --lang de --input test.bpe.de --out test.de

    Args:
        pipeline: file written by `docmt text pack`.
        lang: language code.
        input: file to read, one sentence per line.
    """
    from docmt.text.pipeline import TextPipeline
    from docmt.text.text_files import restore_file

    restore_file(input, out, pipeline=TextPipeline.load(pipeline), lang=lang)


@commands.command
def roundtrip(*, pipeline: Path, inputs: list[str], out: OutFile) -> None:
    """Count the lines that are restored exactly from subwords.

    Example:
        docmt text roundtrip --pipeline pipeline.json --inputs en=train.en de=train.de --out roundtrip.json

    Args:
        pipeline: file written by `docmt text pack`.
        inputs: plain text files, each as LANG=FILE.
        out: JSON file to write.
    """
    from docmt.text.pipeline import TextPipeline
    from docmt.text.roundtrip import measure_files

    results = measure_files(TextPipeline.load(pipeline), inputs)
    write_json(out, results)
    for lang, result in results["languages"].items():
        print(f"{lang}: {result['restored']} of {result['lines']} lines restored")
