"""Checks across config sections: references, contradictions, cycles. Errors name the keys."""

import itertools
from collections import Counter
from dataclasses import replace

from docmt.config.discourse import PLAIN_PARSERS, TREEBANKS
from docmt.config.references import check_reference, check_suite, is_generative
from docmt.config.report_checks import check_report
from docmt.config.schema import Config
from docmt.config.study_rows import TRAINED_ON, DatasetSettings, PretrainedInit, SystemSettings
from docmt.config.systems import (
    PARTS_OF_TASKS,
    Run,
    check_output,
    check_trained,
    decoding_settings,
    is_trained,
    list_runs,
    model_settings,
    run_names,
    system_runs,
    text_settings,
    training_settings,
)
from docmt.errors import UserError
from docmt.evaluation.metrics import CXMI, check_target_language
from docmt.models.attention.patterns import can_start_from
from docmt.settings import look_up, nearest
from docmt.text.tokenizer import check_language
from docmt.training.settings import FROZEN_SENTENCES, TaskName, TrainingSettings


def check_config(config: Config) -> None:
    """Raise UserError when sections contradict each other."""
    # From data to report: each check may rely on the ones before it.
    for name, dataset in config.datasets.items():
        _check_dataset(config, name, dataset)
    _check_discourse(config)
    for name, system in config.systems.items():
        _check_system(config, name, system)
    # After all systems: a chain of inits is followed only where each row is valid by itself.
    for name in config.systems:
        _check_init(config, name)
    runs = list_runs(config)
    if not runs:
        raise UserError("config.systems: no system is trained on any dataset; check systems.*.datasets")
    for metric, by_test in config.evaluation.external.items():
        _check_external_scores(config, metric, by_test)
    if not any(config.systems[run.system].evaluate for run in runs):
        raise UserError("config.systems: no system is scored: remove `evaluate: false` from one of them")
    check_report(config)


def _check_dataset(config: Config, name: str, dataset: DatasetSettings) -> None:
    where = f"config.datasets.{name}"
    if dataset.src_lang == dataset.tgt_lang:
        raise UserError(f"{where}: src_lang and tgt_lang are both {dataset.src_lang!r}")
    for key in ("src_lang", "tgt_lang"):
        # Otherwise only the tokenizer would refuse, in the fifth job of a study.
        try:
            check_language(getattr(dataset, key), text_settings(config, name).tokenization)
        except UserError as error:
            raise UserError(f"{where}.{key}: {error}") from None
    try:
        check_target_language(config.evaluation, dataset.tgt_lang)
    except UserError as error:
        raise UserError(f"{where}.tgt_lang: {error}") from None
    lang = dataset.monolingual_lang
    if lang is not None and lang not in dataset.languages:
        raise UserError(f"{where}.monolingual_lang: {lang!r} must be src_lang or tgt_lang")
    if lang is not None and not dataset.monolingual:
        raise UserError(f"{where}: monolingual_lang is set, but monolingual is empty")
    held: dict[str, str] = {}
    for part, references in dataset.all_parts().items():
        key = part.replace("test_", "test.", 1)
        for reference in references:
            check_reference(config, reference, languages=dataset.part_languages(part), where=f"{where}.{key}")
            if references.count(reference) > 1:
                raise UserError(f"{where}.{key}: duplicate {reference!r}")
            # Tests can share documents, for example subsets, but not with the training data.
            other = held.setdefault(reference, key)
            if (key in TRAINED_ON) != (other in TRAINED_ON):
                trained, tested = (key, other) if key in TRAINED_ON else (other, key)
                raise UserError(f"{where}.{trained} and {where}.{tested} both contain {reference!r}; keep one")
    _check_filters(config, name, dataset)
    for test in dataset.references:
        look_up(dataset.test, test, where=f"{where}.references", what="test set")
    suites: dict[str, str] = {}
    tests: dict[str, str] = {}
    if CXMI in config.evaluation.metrics:  # computed for test sets and suites, by name
        tests = {test.lower(): f"test.{test}" for test in dataset.test}
    for reference in dataset.suites:
        check_suite(config, reference, languages=dataset.languages, where=f"{where}.suites")
        suite = reference.split("/")[1]
        key = suite.lower()  # some disks ignore case
        # No CXMI is computed for generative suites.
        if key in suites or (key in tests and not is_generative(config, reference)):
            other = suites.get(key) or tests[key]
            raise UserError(
                f"{where}.suites: {other!r} and {reference!r} would both be called {suite!r}: rename one of them"
            )
        suites[key] = reference


def _check_filters(config: Config, name: str, dataset: DatasetSettings) -> None:
    for part, row in dataset.filters.items():
        where = f"config.datasets.{name}.filters"
        references = dict.fromkeys(look_up(dataset.parallel_parts(), part, where=where, what="part"))
        filters = look_up(config.corpora.filters, row, where=f"{where}.{part}", what="filter")
        training_keys = []
        if filters.on_failure == "mask":
            training_keys.append("on_failure 'mask'")
        if filters.max_test_overlap is not None:
            training_keys.append("max_test_overlap")
        if training_keys and part not in TRAINED_ON:
            raise UserError(f"{where}.{part}: {training_keys[0]} of filter {row!r} applies only to training data")
        for lang in filters.scripts:
            where = f"config.corpora.filters.{row}.scripts"
            look_up(dict.fromkeys(dataset.part_languages(part)), lang, where=where, what="language")
        for reference in filters.external:
            where = f"config.corpora.filters.{row}.external"
            look_up(references, reference, where=where, what="split")


def _check_discourse(config: Config) -> None:
    section = config.discourse
    treebanks = dict.fromkeys([*TREEBANKS, *config.corpora.controlled])
    for name in section.parsers:
        if name in PLAIN_PARSERS:
            where = f"config.discourse.parsers.{name}"
            raise UserError(f"{where}: this name is reserved for a parser that needs no training; choose another")
    for kind, rows in (("segmenters", section.segmenters), ("parsers", section.parsers)):
        for name, row in rows.items():
            look_up(treebanks, row.treebank, where=f"config.discourse.{kind}.{name}.treebank", what="treebank")
    for kind, rows in (("parsers", section.parsers), ("trees", section.trees)):
        for name, row in rows.items():
            if row.segmenter is not None:
                where = f"config.discourse.{kind}.{name}.segmenter"
                look_up(section.segmenters, row.segmenter, where=where, what="segmenter")
    parsers = dict.fromkeys([*section.parsers, *PLAIN_PARSERS])
    for name, trees in section.trees.items():
        if trees.parser is not None:
            look_up(parsers, trees.parser, where=f"config.discourse.trees.{name}.parser", what="parser")
        parts: dict[str, list[str]] = {}
        for dataset, row in config.datasets.items():
            parts |= _tree_parts(dataset, row, with_pairs=True)
        for part in trees.files:
            look_up(parts, part, where=f"config.discourse.trees.{name}.files", what="part")
    for name, instances in config.instances.items():
        if instances.trees is not None:
            look_up(section.trees, instances.trees, where=f"config.instances.{name}.trees", what="trees")


def _tree_parts(name: str, dataset: DatasetSettings, *, with_pairs: bool) -> dict[str, list[str]]:
    """Return all texts that a system can read trees for, as `DATASET/PART`, with their references."""
    parts = dataset.parallel_parts() if with_pairs else dataset.parts()
    for suite in dataset.suite_names():
        parts[f"suite_{suite}"] = [dataset.suite_reference(suite)]
    return {f"{name}/{part}": references for part, references in parts.items()}


def _check_system(config: Config, name: str, system: SystemSettings) -> None:
    where = f"config.systems.{name}"
    if system.has_user_output:
        for test in system.hypotheses:
            look_up(config.test_sets(), test, where=f"{where}.hypotheses", what="test set")
        suites = {}
        for dataset, row in config.datasets.items():
            for reference in row.suites:
                suites[f"{dataset}/{reference.split('/')[1]}"] = reference
        for suite in system.log_probabilities:
            reference = look_up(suites, suite, where=f"{where}.log_probabilities", what="suite")
            if is_generative(config, reference):
                raise UserError(
                    f"{where}.log_probabilities: {suite!r} is a generative test set, which external systems cannot be "
                    "scored on; remove it"
                )
        return
    for dataset in system.datasets or []:
        look_up(config.datasets, dataset, where=f"{where}.datasets", what="dataset")
    instances = look_up(config.instances, system.instances, where=f"{where}.instances", what="instances")
    context = decoding_settings(config, name).context
    _check_trees(config, name)
    if system.use_model_of is not None:
        check_trained(config, system.use_model_of, where=f"{where}.use_model_of")
        _check_runs_of(config, name, system.use_model_of, where=f"{where}.use_model_of")
    if context == "joined" and not system.is_published:
        raise UserError(
            f"{where}: decoding.context 'joined' is for published models: remove the key, or architecture and recipe"
        )
    if context == "none" and model_settings(config, name).context is None:
        raise UserError(
            f"{where}: decoding.context 'none' skips the context module, but this model has none: remove the key, "
            "or use an architecture with one, for example 'global_context'"
        )
    if system.use_model_of is not None or system.is_published:
        return  # the other row, which is checked by itself, has model and training
    model_settings(config, name)
    training = training_settings(config, name)
    _check_tasks(config, name, training.tasks)
    _check_frozen(config, name, training)
    if training.init_new_parameters == "zero" and system.init is not None:
        try:
            model_settings(config, name).check_zero_init()
        except UserError as error:
            raise UserError(f"{where}: training.{error}") from None
    reads_documents = instances.max_sentences != 1 and {"documents", "restoration"} & set(training.tasks)
    if training.max_batch_tokens < instances.max_tokens and reads_documents:
        raise UserError(
            f"{where}: max_batch_tokens {training.max_batch_tokens} (recipe {system.recipe!r}) is less than "
            f"instances.{system.instances}.max_tokens {instances.max_tokens}: a batch must fit one instance"
        )


def _check_external_scores(config: Config, metric: str, by_test: dict[str, dict[str, str]]) -> None:
    """Raise UserError for score files without a scored test set or run."""
    for test, by_run in by_test.items():
        where = f"config.evaluation.external.{metric}"
        dataset = look_up(config.test_sets(), test, where=where, what="test set")
        runs = [run for run in list_runs(config) if run.dataset == dataset and config.systems[run.system].evaluate]
        n_seeds = Counter(run.system for run in runs)
        names: dict[str, Run] = {}
        for run in runs:
            full_name, short_name = run_names(run)
            names[full_name] = run
            if n_seeds[run.system] == 1:
                names[short_name] = run
        used: dict[Run, str] = {}
        for name in by_run:
            run = look_up(names, name, where=f"{where}.{test}", what="run")
            check_output(config, run.system, test, is_suite=False, where=f"{where}.{test}")
            other = used.setdefault(run, name)
            if other != name:
                raise UserError(f"{where}.{test}: {other!r} and {name!r} are the same run; remove one")


def _check_trees(config: Config, system: str) -> None:
    row = config.systems[system]
    instances = config.instances[row.instances]
    if instances.trees is None:
        if row.use_model_of is None and model_settings(config, system).needs_trees:
            raise UserError(
                f"config.systems.{system}: architecture {row.architecture!r} reads trees, but "
                f"instances.{row.instances} has none: set its key `trees`"
            )
        return
    trees = config.discourse.trees[instances.trees]
    where = f"config.discourse.trees.{instances.trees}"
    reads_pairs = is_trained(config, system) and "pairs" in training_settings(config, system).tasks
    for name in row.datasets or config.datasets:
        dataset = config.datasets[name]
        # Also splits and suites that no system reads yet, so that a growing study does not stop half-way.
        parts = _tree_parts(name, dataset, with_pairs=reads_pairs)
        if trees.gold:
            for reference in itertools.chain.from_iterable(parts.values()):
                if reference.split("/")[0] not in config.corpora.controlled:
                    raise UserError(
                        f"{where}.gold: {reference!r} in dataset {name!r} is not a generated corpus, so it has no gold "
                        "trees: use a segmenter and a parser"
                    )
            for row_name in dataset.filters.values():
                filters = config.corpora.filters[row_name]
                if filters.on_failure != "mask" or filters.max_test_overlap is not None:
                    raise UserError(
                        f"{where}.gold: trees need whole documents: filters of {name!r} need on_failure mask"
                    )
            # Trees of a generated corpus belong to its English side.
            if dataset.src_lang != "en":
                raise UserError(
                    f"{where}.gold: generated corpora have trees for English, "
                    f"but {name!r} translates from {dataset.src_lang}"
                )
        if trees.files:
            for key in parts:
                if key not in trees.files:
                    raise UserError(f"{where}.files: {key!r} is missing; {nearest(key, list(trees.files))}")


def _check_frozen(config: Config, name: str, training: TrainingSettings) -> None:
    if training.freeze == "none":
        return
    if config.systems[name].init is None:
        raise UserError(
            f"config.systems.{name}: training.freeze {training.freeze!r} freezes the parameters from `init`, but "
            "the system has no init: set init, or remove this key"
        )
    if model_settings(config, name).context is not None and {"sentences", "pairs"} & set(training.tasks):
        raise UserError(f"config.systems.{name}: {FROZEN_SENTENCES}")


def _check_tasks(config: Config, name: str, tasks: list[TaskName]) -> None:
    for run in system_runs(config, name):
        dataset = config.datasets[run.dataset]
        for task, part in PARTS_OF_TASKS.items():
            if task in tasks and not getattr(dataset, part):
                raise UserError(
                    f"config.systems.{name}: its training has the task {task!r}, but "
                    f"config.datasets.{run.dataset}.{part} is empty: add data there, or remove the task"
                )


def _check_runs_of(config: Config, name: str, origin: str, *, where: str) -> None:
    # A run starts from the model with the same dataset and seed. Otherwise seeds would not be independent samples.
    origin_runs = system_runs(config, origin)
    for run in system_runs(config, name):
        if replace(run, system=origin) not in origin_runs:
            raise UserError(
                f"{where}: {origin!r} has no run on dataset {run.dataset!r} with seed {run.seed}; compare datasets "
                "and seeds of both systems"
            )


def _check_init(config: Config, name: str) -> None:
    system = config.systems[name]
    if isinstance(system.init, PretrainedInit):
        _check_pretrained(config, name, system.init)
    if system.init_system is None:
        return
    where = f"config.systems.{name}"
    look_up(config.systems, system.init_system, where=f"{where}.init", what="system")
    chain: list[str] = []
    origin: str | None = name
    while origin is not None:
        if origin in chain:
            raise UserError(f"{where}.init: cycle of initial models: {' ← '.join([*chain, origin])}")
        chain.append(origin)
        origin = config.systems[origin].init_system
        if origin is not None:
            look_up(config.systems, origin, where=f"config.systems.{chain[-1]}.init", what="system")
    check_trained(config, system.init_system, where=f"{where}.init")
    _check_runs_of(config, name, system.init_system, where=f"{where}.init")
    mine, theirs = model_settings(config, name), model_settings(config, system.init_system)
    shapes, initial_shapes = mine.shapes(), theirs.shapes()
    # A shape that only one of the models has belongs to a part that the other model lacks.
    for key in shapes:
        if key in initial_shapes and shapes[key] != initial_shapes[key]:
            raise UserError(
                f"{where}.model.{key} is {shapes[key]}, but config.systems.{system.init}.model.{key} is "
                f"{initial_shapes[key]}: both must be equal"
            )
    for slot, attention in mine.attentions.items():
        n_layers = mine.encoder_layers if slot == "encoder" else mine.decoder_layers
        for layer in range(n_layers):
            pattern = attention.pattern(layer, n_layers)
            initial_pattern = theirs.attentions[slot].pattern(layer, n_layers)
            if pattern != initial_pattern and not can_start_from(pattern, initial_pattern):
                raise UserError(
                    f"{where}.init: {slot}_attention {pattern!r} cannot start from {initial_pattern!r} of "
                    f"{system.init!r}: start from a system with one attention per layer, or remove init"
                )


def _check_pretrained(config: Config, name: str, init: PretrainedInit) -> None:
    # Published embedding rows follow the order of the published pieces.
    for run in system_runs(config, name):
        folder = text_settings(config, run.dataset).pretrained
        if folder != init.pretrained:
            raise UserError(
                f"config.systems.{name}.init.pretrained is {init.pretrained!r}, but text.pretrained of dataset "
                f"{run.dataset!r} is {folder!r}: the subword model must match the pretrained model"
            )
