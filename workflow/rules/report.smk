# Report: one long table of all scores, and what is made of it.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/scores/*.json, history.csv
#         results/{dataset}/instances/statistics.csv, results/{dataset}/corpora/overlap.json
#         results/{dataset}/text/roundtrip.json
#         results/{dataset}/discourse/{trees}/statistics.csv, relations.csv, dev.svg
#         results/discourse/segmenters/{segmenter}/evaluation.json, results/discourse/parsers/{parser}/evaluation.json
#         results/benchmarks/, logs/train/, logs/translate/, logs/contrast/     for the table of costs; no inputs
# Makes:  results/report/scores.csv                   the long table
#         results/report/report.md, report.html       tables, curves and how each number was made
#         results/report/summary.txt                  the main tables as plain text
#         results/tables/{table}.txt, .md, .csv, .tex one table of `report.tables` alone
#         results/report/tables/, figures/


rule gather:
    """Gather the scores of all runs into one long table."""
    input:
        plan.runs.scores,
    output:
        report(
            "results/report/scores.csv",
            category="Scores",
            caption="../captions/scores.rst",
        ),
    log:
        "logs/gather/gather.log",
    benchmark:
        "results/benchmarks/gather/gather.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        fingerprint=plan.runs.fingerprint,
    shell:
        "docmt report gather --scores {input} --out {output} 2> {log}"


rule study_table:
    """Make table {wildcards.table} of the study from the scores of its systems alone."""
    input:
        plan.report.table_scores,
    output:
        multiext("results/tables/{table}", ".txt", ".md", ".csv", ".tex"),
    log:
        "logs/study_table/{table}.log",
    benchmark:
        "results/benchmarks/study_table/{table}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        settings=plan.report.settings,
        facts=plan.report.facts,
        fingerprint=plan.report.table_fingerprint,
        prefix=lambda wildcards: f"results/tables/{wildcards.table}",
    shell:
        "docmt report table --settings {params.settings:q} --facts {params.facts:q} --name {wildcards.table}"
        " --scores {input} --out {params.prefix} > /dev/null 2> {log}"


rule render:
    """Make tables, pictures and the page."""
    input:
        scores="results/report/scores.csv",
        histories=plan.report.histories,
        statistics=plan.report.statistics,
        overlaps=plan.report.overlaps,
        counts=plan.report.counts,
        roundtrips=plan.report.roundtrips,
        trees=plan.report.trees,
    output:
        summary="results/report/summary.txt",
        markdown="results/report/report.md",
        html=report(
            "results/report/report.html",
            category="Report",
            caption="../captions/report.rst",
        ),
        tables=directory("results/report/tables"),
        figures=report(
            directory("results/report/figures"),
            patterns=["{name}.svg"],
            category="Curves",
            caption="../captions/figures.rst",
        ),
    log:
        "logs/render/render.log",
    benchmark:
        "results/benchmarks/render/render.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        settings=plan.report.settings,
        facts=plan.report.facts,
        histories=plan.report.named_histories,
        overlaps=plan.report.named_overlaps,
        counts=plan.report.named_counts,
        roundtrips=plan.report.named_roundtrips,
        trees=plan.report.tree_options,
        # No inputs: all jobs before this one have left their benchmarks and logs there.
        benchmarks="results/benchmarks",
        logs="logs",
        fingerprint=plan.report.fingerprint,
    shell:
        "docmt report render --settings {params.settings:q} --facts {params.facts:q} --scores {input.scores} --histories {params.histories}"
        " --statistics {input.statistics} --overlaps {params.overlaps} --counts {params.counts}"
        " --roundtrips {params.roundtrips} {params.trees}"
        " --benchmarks {params.benchmarks} --logs {params.logs} --out results/report > {output.summary} 2> {log}"
