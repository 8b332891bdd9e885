# Report: one long table of all scores, and the tables, pictures and page made from it.
#
# Reads:  results/{dataset}/runs/{system}/seed{seed}/scores/*.json, history.csv
#         results/{dataset}/instances/statistics.csv, results/{dataset}/corpora/overlap.json
#         results/{dataset}/text/roundtrip.json
#         results/{dataset}/discourse/{trees}/statistics.csv, relations.csv, dev.svg
#         results/discourse/segmenters/{segmenter}/evaluation.json, results/discourse/parsers/{parser}/evaluation.json
#         results/benchmarks/, *.job.json                 for the table of costs; not declared as inputs
# Makes:  results/report/scores.csv                   the long table
#         results/report/report.md, report.html       tables, curves, and how each number was computed
#         results/report/summary.txt                  the main tables as plain text
#         results/tables/{table}.txt, .md, .csv, .tex one table of `report.tables` alone
#         results/tables/{cases}.txt, .md, .csv, .tex one case study of `report.cases` alone
#         results/figures/{figure}.svg, .png, .csv    one picture of `report.figures` or `report.curves` alone
#         results/claims/{claim}.txt, .md, .csv       one claim of `report.claims` alone
#         results/claims.txt, .md, .csv               all claims
#         results/report/tables/, figures/
#         results/report/reader.html                  translations and items of suites to read; from texts, decoding/


use rule gather_system as gather with:
    input:
        plan.all_scores.input(),
    output:
        report(
            "results/report/scores.csv",
            category="Scores",
            labels={"table": "all scores"},
            caption="../captions/scores.rst",
        ),
    log:
        "logs/gather/gather.log",
    benchmark:
        "results/benchmarks/gather/gather.tsv"
    localrule: True
    params:
        fingerprint=plan.all_scores.fingerprint,
        fingerprints=plan.all_scores.fingerprints("scores"),


rule study_table:
    """Make table {wildcards.table} of the study from the scores of its systems alone."""
    input:
        scores=plan.table.input("scores"),
        differences=plan.table.input("differences"),
    output:
        multiext("results/tables/{table}", ".txt", ".md", ".csv", ".tex"),
    log:
        "logs/study_table/{table}.log",
    benchmark:
        "results/benchmarks/study_table/{table}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.table.param("settings"),
        facts=plan.table.param("facts"),
        differences=option("--differences", "differences"),
        fingerprint=plan.table.fingerprint,
        fingerprints=plan.table.fingerprints("scores"),
        prefix="results/tables/{table}",
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report table --settings {params.settings:q} --facts {params.facts:q} --name {wildcards.table}"
        " --scores {input.scores} {params.differences} --fingerprints {params.fingerprints}"
        " --out {params.prefix} > /dev/null 2> {log}"


rule study_cases:
    """Choose the sentences of case study {wildcards.cases}."""
    input:
        references=plan.case_study.input("references"),
        system=plan.case_study.input("system"),
        baseline=plan.case_study.input("baseline"),
    output:
        multiext("results/tables/{cases}", ".txt", ".md", ".csv", ".tex"),
    log:
        "logs/study_cases/{cases}.log",
    benchmark:
        "results/benchmarks/study_cases/{cases}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.case_study.param("settings"),
        languages=plan.case_study.param("languages"),
        text=plan.case_study.param("prefix"),
        fingerprint=plan.case_study.fingerprint,
        prefix="results/tables/{cases}",
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report cases --settings {params.settings:q} --name {wildcards.cases} --prefix {params.text}"
        " {params.languages} --system {input.system} --baseline {input.baseline} --out {params.prefix} 2> {log}"


rule study_figure:
    """Draw figure {wildcards.figure} of the study from the scores or histories of its systems alone."""
    input:
        scores=plan.figure.input("scores"),
        histories=plan.figure.input("histories"),
    output:
        multiext("results/figures/{figure}", ".svg", ".png", ".csv"),
    log:
        "logs/study_figure/{figure}.log",
    benchmark:
        "results/benchmarks/study_figure/{figure}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.figure.param("settings"),
        facts=plan.figure.param("facts"),
        manifest=plan.figure.param("manifest"),
        scores=option("--scores", "scores"),
        fingerprint=plan.figure.fingerprint,
        prefix="results/figures/{figure}",
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report figure --settings {params.settings:q} --facts {params.facts:q} --name {wildcards.figure}"
        " {params.scores} --manifest {params.manifest:q} --out {params.prefix} 2> {log}"


rule judge_claim:
    """Judge claim {wildcards.claim} from the scores and histories of its systems alone."""
    input:
        scores=plan.claim.input("scores"),
        histories=plan.claim.input("histories"),
    output:
        multiext("results/claims/{claim}", ".txt", ".md", ".csv"),
    log:
        "logs/judge_claim/{claim}.log",
    benchmark:
        "results/benchmarks/judge_claim/{claim}.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.claim.param("settings"),
        manifest=plan.claim.param("manifest"),
        fingerprint=plan.claim.fingerprint,
        fingerprints=plan.claim.fingerprints("scores"),
        prefix="results/claims/{claim}",
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report claims --settings {params.settings:q} --name {wildcards.claim} --scores {input.scores}"
        " --manifest {params.manifest:q} --fingerprints {params.fingerprints} --out {params.prefix} > /dev/null 2> {log}"


rule judge_claims:
    """Judge all claims of the study."""
    input:
        scores=plan.claims.input("scores"),
        histories=plan.claims.input("histories"),
    output:
        multiext("results/claims", ".txt", ".md", ".csv"),
    log:
        "logs/judge_claims/judge_claims.log",
    benchmark:
        "results/benchmarks/judge_claims/judge_claims.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.claims.param("settings"),
        manifest=plan.claims.param("manifest"),
        fingerprint=plan.claims.fingerprint,
        fingerprints=plan.claims.fingerprints("scores"),
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report claims --settings {params.settings:q} --scores {input.scores}"
        " --manifest {params.manifest:q} --fingerprints {params.fingerprints} --out results/claims > /dev/null 2> {log}"


rule render:
    """Make tables, pictures and the page."""
    input:
        scores="results/report/scores.csv",
        histories=plan.report.input("histories"),
        statistics=plan.report.input("statistics"),
        overlaps=plan.report.input("overlaps"),
        counts=plan.report.input("counts"),
        roundtrips=plan.report.input("roundtrips"),
        trees=plan.report.input("trees"),
        differences=plan.report.input("differences"),
        cases=plan.report.input("cases"),
    output:
        summary="results/report/summary.txt",
        markdown="results/report/report.md",
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
        "logs/render/render.log",
    benchmark:
        "results/benchmarks/render/render.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.report.param("settings"),
        facts=plan.report.param("facts"),
        manifest=plan.report.param("manifest"),
        fingerprint=plan.report.fingerprint,
        fingerprints=plan.all_scores.fingerprints("scores"),
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report render --settings {params.settings:q} --facts {params.facts:q} --scores {input.scores}"
        " --manifest {params.manifest:q} --fingerprints {params.fingerprints}"
        " --out results/report > {output.summary} 2> {log}"


rule render_reader:
    """Make the page in which one reads translations and items of suites."""
    input:
        plan.reader.input("shown"),
    output:
        report(
            "results/report/reader.html",
            category="Report",
            labels={"page": "translations to read"},
            caption="../captions/reader.rst",
        ),
    log:
        "logs/render_reader/render_reader.log",
    benchmark:
        "results/benchmarks/render_reader/render_reader.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        settings=plan.reader.param("settings"),
        manifest=plan.reader.param("manifest"),
        fingerprint=plan.reader.fingerprint,
    shell:
        "DOCMT_FINGERPRINT={params.fingerprint}"
        " docmt report reader --settings {params.settings:q} --manifest {params.manifest:q} --out {output} 2> {log}"
