# Report: one long table of all scores, and the tables, pictures and page made from it.


use rule gather_system as gather with:
    input:
        scores=plan.all_scores.input("scores"),
    output:
        out=report(
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
        flags=plan.all_scores.flags,


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
        settings=plan.table.settings,
        fingerprint=plan.table.fingerprint,
        flags=plan.table.flags,
    shell:
        "docmt report table {params.flags} > /dev/null 2> {log}"


rule study_cases:
    """Choose the sentences of case study {wildcards.cases}."""
    input:
        text=plan.case_study.input("text"),
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
        settings=plan.case_study.settings,
        fingerprint=plan.case_study.fingerprint,
        flags=plan.case_study.flags,
    shell:
        "docmt report cases {params.flags} 2> {log}"


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
        settings=plan.figure.settings,
        fingerprint=plan.figure.fingerprint,
        flags=plan.figure.flags,
    shell:
        "docmt report figure {params.flags} 2> {log}"


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
        settings=plan.claim.settings,
        fingerprint=plan.claim.fingerprint,
        flags=plan.claim.flags,
    shell:
        "docmt report claims {params.flags} > /dev/null 2> {log}"


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
        settings=plan.claims.settings,
        fingerprint=plan.claims.fingerprint,
        flags=plan.claims.flags,
    shell:
        "docmt report claims {params.flags} > /dev/null 2> {log}"


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
        settings=plan.report.settings,
        fingerprint=plan.report.fingerprint,
        flags=plan.report.flags,
    shell:
        "docmt report render {params.flags} > {output.summary} 2> {log}"


rule render_reader:
    """Make the page in which one reads translations and items of suites."""
    input:
        shown=plan.reader.input("shown"),
    output:
        out=report(
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
        settings=plan.reader.settings,
        fingerprint=plan.reader.fingerprint,
        flags=plan.reader.flags,
    shell:
        "docmt report reader {params.flags} 2> {log}"
