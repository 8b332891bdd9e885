# Report: long tables of scores, and the tables, pictures and pages made from scores, histories and translations.


rule gather:
    """Gather scores into one table: of the study, of a dataset, or of a system on it ({wildcards.scope})."""
    input:
        plan.scores_table.input("scores"),
    output:
        report(
            "results/{scope}/scores.csv",
            category="Scores",
            labels={"table": "{scope}"},
            caption="../captions/scores.rst",
        ),
    log:
        "logs/gather/{scope}.log",
    benchmark:
        "results/benchmarks/gather/{scope}.tsv"
    wildcard_constraints:
        scope=plan.score_scopes(),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.scores_table.fingerprint,
        fingerprints=plan.scores_table.score_fingerprints,
    shell:
        "docmt report collect --scores {input} {params.fingerprints} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"


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
        fingerprint=plan.table.fingerprint,
        settings=plan.table.settings,
        columns=plan.table.options("paper_columns"),
        differences=plan.table.options("differences"),
        fingerprints=plan.table.score_fingerprints,
    shell:
        "docmt report table --settings {params.settings:q} {params.columns} --name {wildcards.table}"
        " --scores {input.scores} {params.differences} {params.fingerprints}"
        " --out results/tables/{wildcards.table} --fingerprint {params.fingerprint} > /dev/null 2> {log}"


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
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.case_study.fingerprint,
        settings=plan.case_study.settings,
        text=plan.case_study.options("prefix", "src_lang", "tgt_lang"),
    shell:
        "docmt report cases --settings {params.settings:q} --name {wildcards.cases} {params.text}"
        " --system {input.system} --baseline {input.baseline} --out results/tables/{wildcards.cases}"
        " --fingerprint {params.fingerprint} 2> {log}"


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
        fingerprint=plan.figure.fingerprint,
        settings=plan.figure.settings,
        columns=plan.figure.options("paper_columns"),
        shown=plan.figure.options("scores", "manifest"),
    shell:
        "docmt report figure --settings {params.settings:q} {params.columns} --name {wildcards.figure}"
        " {params.shown} --out results/figures/{wildcards.figure} --fingerprint {params.fingerprint} 2> {log}"


rule judge_claims:
    """Judge all claims of the study, or one of them from the scores and histories of its systems alone."""
    input:
        scores=plan.judged_claims.input("scores"),
        histories=plan.judged_claims.input("histories"),
    output:
        multiext("results/{claims}", ".txt", ".md", ".csv"),
    log:
        "logs/judge_claims/{claims}.log",
    benchmark:
        "results/benchmarks/judge_claims/{claims}.tsv"
    wildcard_constraints:
        claims=f"claims(/({plan.row_pattern('report.claims')}))?",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.judged_claims.fingerprint,
        settings=plan.judged_claims.settings,
        name=plan.judged_claims.options("name"),
        shown=plan.judged_claims.options("scores", "manifest"),
        fingerprints=plan.judged_claims.score_fingerprints,
    shell:
        "docmt report claims --settings {params.settings:q} {params.name} {params.shown} {params.fingerprints}"
        " --out results/{wildcards.claims} --fingerprint {params.fingerprint} > /dev/null 2> {log}"


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
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.report.fingerprint,
        settings=plan.report.settings,
        columns=plan.report.options("paper_columns"),
        manifest=plan.report.param("manifest"),
        fingerprints=plan.report.score_fingerprints,
    shell:
        "docmt report render --settings {params.settings:q} {params.columns} --scores {input.scores}"
        " --manifest {params.manifest:q} {params.fingerprints} --out results/report"
        " --fingerprint {params.fingerprint} > {output.summary} 2> {log}"


rule render_reader:
    """Make the page in which one reads translations and items of suites."""
    input:
        shown=plan.reader.input("shown"),
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
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.reader.fingerprint,
        settings=plan.reader.settings,
        manifest=plan.reader.param("manifest"),
    shell:
        "docmt report reader --settings {params.settings:q} --manifest {params.manifest:q} --out {output}"
        " --fingerprint {params.fingerprint} 2> {log}"
