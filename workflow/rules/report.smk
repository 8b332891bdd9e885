# Report: long tables of scores, and the tables, pictures and pages made from scores, histories and translations.


rule report_collect:
    """Gather scores into one table: of the study, of a dataset, or of a system on a dataset."""
    input:
        # Score files of runs: results/{dataset}/runs/{system}/seed{seed}/scores.json, and the files in scores/ next to
        # it with COMET or CXMI.
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
        # --fingerprints: the command refuses scores of other settings.
        score_fingerprints=plan.score_fingerprints("scores_table"),
    shell:
        "docmt report collect --scores {input} {params.score_fingerprints} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule report_table:
    """Make one table of `report.tables`, as soon as its systems are scored."""
    input:
        scores=plan.input("table", "scores"),  # score files of its systems, as in `report_collect`
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
        # JSON with columns of the papers that follow from the settings of the systems, such as "Bi-sent".
        columns=plan.options("table", "paper_columns"),
        differences=plan.options("table", "differences"),
        score_fingerprints=plan.score_fingerprints("table"),
    shell:
        "docmt report table --settings {params.settings:q} {params.columns} --name {wildcards.table}"
        " --scores {input.scores} {params.differences} {params.score_fingerprints}"
        " --out results/tables/{wildcards.table} --fingerprint {params.fingerprint} > /dev/null 2> {log}"


rule report_cases:
    """Choose the sentences of one case study."""
    input:
        text=plan.input("case_study", "text"),  # results/{dataset}/corpora/{src}-{tgt}/test_{test}.*
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
        text=plan.options("case_study", "prefix", "src_lang", "tgt_lang"),
    shell:
        "docmt report cases --settings {params.settings:q} --name {wildcards.cases} {params.text}"
        " --system {input.system} --baseline {input.baseline} --out results/tables/{wildcards.cases}"
        " --fingerprint {params.fingerprint} 2> {log}"


rule report_figure:
    """Draw one figure of `report.figures` or `report.curves`, as soon as its systems are scored or trained."""
    input:
        # In `report.figures`: score files of its systems. In `report.curves`: history.csv of its systems.
        scores=plan.input("figure", "scores"),
        histories=plan.input("figure", "histories"),
    output:
        multiext("results/figures/{figure}", ".svg", ".png", ".csv"),
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
        columns=plan.options("figure", "paper_columns"),
        shown=plan.options("figure", "scores", "manifest"),
        score_fingerprints=plan.score_fingerprints("figure"),
    shell:
        "docmt report figure --settings {params.settings:q} {params.columns} --name {wildcards.figure}"
        " {params.shown} {params.score_fingerprints} --out results/figures/{wildcards.figure}"
        " --fingerprint {params.fingerprint} 2> {log}"


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
        name=plan.options("judged_claims", "name"),
        shown=plan.options("judged_claims", "scores", "manifest"),
        score_fingerprints=plan.score_fingerprints("judged_claims"),
    shell:
        "docmt report claims --settings {params.settings:q} {params.name} {params.shown} {params.score_fingerprints}"
        " --out results/{wildcards.claims} --fingerprint {params.fingerprint} > /dev/null 2> {log}"


rule report_render:
    """Make the report page with all tables, figures and claims."""
    input:
        # The manifest names all files but `scores`.
        scores="results/report/scores.csv",
        histories=plan.input("report", "histories"),  # history.csv of all trainings
        # results/{dataset}/instances/statistics.csv of datasets with instances
        statistics=plan.input("report", "statistics"),
        overlaps=expand(
            "results/{dataset}/corpora/overlap.json", dataset=plan.config.datasets
        ),
        counts=plan.input("report", "counts"),  # .counts.json of all splits that are read or filtered
        roundtrips=expand(
            "results/{dataset}/text/roundtrip.json", dataset=plan.config.datasets
        ),
        # Statistics of trees in results/{dataset}/discourse/, and evaluation.json of their segmenters and parsers
        trees=plan.input("report", "trees"),
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
        columns=plan.options("report", "paper_columns"),
        manifest=plan.param("report", "manifest"),
        score_fingerprints=plan.score_fingerprints("report"),
    shell:
        "docmt report render --settings {params.settings:q} {params.columns} --scores {input.scores}"
        " --manifest {params.manifest:q} {params.score_fingerprints} --out results/report"
        " --fingerprint {params.fingerprint} > {output.summary} 2> {log}"


rule report_reader:
    """Make the page with all translations and suite items."""
    input:
        # Texts, suites, trees and outputs of all scored runs. The manifest names them.
        shown=plan.input("reader", "shown"),
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
        manifest=plan.param("reader", "manifest"),
    shell:
        "docmt report reader --settings {params.settings:q} --manifest {params.manifest:q} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
