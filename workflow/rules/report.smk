# Report: tables, pictures and pages from scores, histories and translations.


rule report_collect:
    """Gather scores into one table: of the study, of a dataset, or of a system on a dataset."""
    input:
        # Score files: results/{dataset}/runs/{system}/seed{seed}/scores.json, and files in scores/ next to it with
        # COMET or CXMI.
        plan.input("scores_table", "scores"),
    output:
        report(
            "results/{scope}/scores.csv",
            category="Scores",
            labels={"table": "{scope}"},
            caption="../captions/scores.rst",
        ),
    log:
        "logs/report_collect/{scope}.log",
    benchmark:
        "results/benchmarks/report_collect/{scope}.tsv"
    wildcard_constraints:
        scope=plan.scope_pattern(),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("scores_table"),
        # --fingerprints: the command refuses scores from other settings.
        score_fingerprints=plan.score_fingerprints("scores_table"),
    shell:
        "docmt report collect --scores {input} {params.score_fingerprints} --out {output} 2> {log}"


rule report_table:
    """Make one table of `report.tables`, as soon as its systems are scored."""
    input:
        scores=plan.input("table", "scores"),  # score files for its systems, as in `report_collect`
        # With a baseline: results/{dataset}/runs/{system}/against/{baseline}.json
        differences=plan.input("table", "differences"),
    output:
        multiext("results/tables/{table}", ".txt", ".md", ".csv", ".tex"),
    log:
        "logs/report_table/{table}.log",
    benchmark:
        "results/benchmarks/report_table/{table}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("table"),
        settings=plan.settings("table"),
        # JSON with properties that follow from system settings, for example the paper's column "Bi-sent".
        study=plan.param("table", "study"),
        score_fingerprints=plan.score_fingerprints("table"),
    shell:
        "docmt report table --settings {params.settings:q} --study {params.study:q} --name {wildcards.table}"
        " --scores {input.scores} --differences {input.differences} {params.score_fingerprints}"
        " --out results/tables/{wildcards.table} > /dev/null 2> {log}"


rule report_cases:
    """Choose the sentences of one case study."""
    input:
        texts=plan.input("case_study", "texts"),  # results/{dataset}/corpora/{src}-{tgt}/test_{test}.*
        # Translations with the first seed: results/{dataset}/runs/{system}/seed{seed}/decoding/test_{test}.jsonl
        system=plan.input("case_study", "system"),
        baseline=plan.input("case_study", "baseline"),
    output:
        multiext("results/tables/{cases}", ".txt", ".md", ".csv", ".tex"),
    log:
        "logs/report_cases/{cases}.log",
    benchmark:
        "results/benchmarks/report_cases/{cases}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("case_study"),
        settings=plan.settings("case_study"),
        languages=plan.params("case_study", "src_lang", "tgt_lang"),
    shell:
        "docmt report cases --settings {params.settings:q} --name {wildcards.cases} --texts {input.texts} {params.languages}"
        " --system {input.system} --baseline {input.baseline} --out results/tables/{wildcards.cases} 2> {log}"


rule report_figure:
    """Draw one figure of `report.figures` or `report.curves`, as soon as its systems are scored or trained."""
    input:
        # For `report.figures`: score files of its systems. For `report.curves`: history.csv of its systems.
        scores=plan.input("figure", "scores"),
        histories=plan.input("figure", "histories"),
    output:
        multiext("results/figures/{figure}", ".svg", ".png", ".pdf", ".csv"),
    log:
        "logs/report_figure/{figure}.log",
    benchmark:
        "results/benchmarks/report_figure/{figure}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("figure"),
        settings=plan.settings("figure"),
        study=plan.param("figure", "study"),
        score_fingerprints=plan.score_fingerprints("figure"),
    shell:
        "docmt report figure --settings {params.settings:q} --study {params.study:q} --name {wildcards.figure}"
        " --scores {input.scores} --histories {input.histories} {params.score_fingerprints}"
        " --out results/figures/{wildcards.figure}"
        " 2> {log}"


rule report_claims:
    """Judge all claims, or one of them as soon as its systems are scored."""
    input:
        # As in `report_figure`.
        scores=plan.input("judged_claims", "scores"),
        histories=plan.input("judged_claims", "histories"),
    output:
        multiext("results/{claims}", ".txt", ".md", ".csv"),
    log:
        "logs/report_claims/{claims}.log",
    benchmark:
        "results/benchmarks/report_claims/{claims}.tsv"
    wildcard_constraints:
        claims=f"claims(/({plan.row_pattern('report.claims')}))?",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("judged_claims"),
        settings=plan.settings("judged_claims"),
        name=plan.params("judged_claims", "name"),
        score_fingerprints=plan.score_fingerprints("judged_claims"),
    shell:
        "docmt report claims --settings {params.settings:q} {params.name} --scores {input.scores}"
        " --histories {input.histories} {params.score_fingerprints} --out results/{wildcards.claims}"
        " > /dev/null 2> {log}"


rule report_render:
    """Make the report page with all tables, figures and claims."""
    input:
        scores="results/report/scores.csv",
        histories=plan.input("report", "histories"),  # history.csv from all trainings
        # results/{dataset}/instances/statistics.csv for datasets with instances
        statistics=plan.input("report", "statistics"),
        overlaps=expand(
            "results/{dataset}/corpora/overlap.json", dataset=plan.config.datasets
        ),
        counts=plan.input("report", "counts"),  # .counts.json for all read or filtered splits
        roundtrips=expand(
            "results/{dataset}/text/roundtrip.json", dataset=plan.config.datasets
        ),
        # statistics.csv and relations.csv in results/{dataset}/discourse/{trees}/
        tree_statistics=plan.input("report", "tree_statistics"),
        tree_relations=plan.input("report", "tree_relations"),
        segmenters=plan.input("report", "segmenters"),  # evaluation.json
        parsers=plan.input("report", "parsers"),
        differences=plan.input("report", "differences"),  # as in `report_table`
        cases=expand("results/tables/{cases}.csv", cases=plan.config.report.cases),
    output:
        summary="results/report/summary.txt",
        html=report(
            "results/report/report.html",
            category="Report",
            labels={"page": "tables and figures"},
            caption="../captions/report.rst",
        ),
        tables=directory("results/report/tables"),
        figures=report(
            directory("results/report/figures"),
            patterns=["{name}.svg"],
            category="Figures",
            labels={"figure": "{name}"},
            caption="../captions/figures.rst",
        ),
    log:
        "logs/report_render/report_render.log",
    benchmark:
        "results/benchmarks/report_render/report_render.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("report"),
        settings=plan.settings("report"),
        study=plan.param("report", "study"),
        score_fingerprints=plan.score_fingerprints("report"),
    shell:
        "docmt report render --settings {params.settings:q} --study {params.study:q} --scores {input.scores}"
        " --histories {input.histories} --statistics {input.statistics} --overlaps {input.overlaps}"
        " --counts {input.counts} --roundtrips {input.roundtrips} --tree-statistics {input.tree_statistics}"
        " --tree-relations {input.tree_relations} --segmenters {input.segmenters} --parsers {input.parsers}"
        " --differences {input.differences} --cases {input.cases} --benchmarks results/benchmarks"
        " --reader reader.html {params.score_fingerprints} --out results/report > {output.summary} 2> {log}"


rule report_reader:
    """Make the page with all translations and suite items."""
    input:
        outputs=plan.input("reader", "outputs"),  # results/{dataset}/runs/{system}/seed{seed}/decoding/*
        texts=plan.input("reader", "texts"),  # results/{dataset}/corpora/{src}-{tgt}/test_*
        suites=plan.input("reader", "suites"),
        generative=plan.input("reader", "generative"),
        trees=plan.input("reader", "trees"),
    output:
        report(
            "results/report/reader.html",
            category="Report",
            labels={"page": "translations to read"},
            caption="../captions/reader.rst",
        ),
    log:
        "logs/report_reader/report_reader.log",
    benchmark:
        "results/benchmarks/report_reader/report_reader.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("reader"),
        settings=plan.settings("reader"),
        study=plan.param("reader", "study"),
        # DATASET/SUITE=FILE and DATASET/TEST/TREES=FILE
        named=plan.options("reader", "suites", "generative", "trees"),
    shell:
        "docmt report reader --settings {params.settings:q} --study {params.study:q} --outputs {input.outputs}"
        " --texts {input.texts} {params.named} --out {output} 2> {log}"
