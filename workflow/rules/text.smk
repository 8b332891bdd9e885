# Text: from sentences to subwords with one shared vocabulary.


rule tokenize:
    """Normalize and tokenize one side of a split."""
    input:
        collect(
            "results/{{dataset}}/corpora/{direction}/{{split}}.{{lang}}",
            direction=plan.direction,
        ),
    output:
        temp("results/{dataset}/text/{split}.tok.{lang}"),
    log:
        "logs/tokenize/{dataset}/{split}/{lang}.log",
    benchmark:
        "results/benchmarks/tokenize/{dataset}/{split}/{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    resources:
        **scale_with_attempt(mem_mb=4000, runtime=120),
    params:
        fingerprint=plan.fingerprint("tokens"),
        settings=plan.settings("tokens"),
    shell:
        "docmt text tokenize --settings {params.settings:q} --lang {wildcards.lang} --input {input} --out {output}"
        " --jobs {threads} 2> {log}"


rule learn_truecaser:
    """Learn how words in a language are written inside sentences."""
    input:
        collect(
            "results/{{dataset}}/text/{split}.tok.{{lang}}",
            split=plan.learned_on,
        ),
    output:
        "results/{dataset}/text/truecaser.{lang}.json",
    log:
        "logs/learn_truecaser/{dataset}/{lang}.log",
    benchmark:
        "results/benchmarks/learn_truecaser/{dataset}/{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.fingerprint("truecaser"),
        settings=plan.settings("truecaser"),
    shell:
        "docmt text learn-truecaser --settings {params.settings:q} --inputs {input} --out {output} --jobs {threads}"
        " 2> {log}"


rule truecase:
    """Truecase one side of a split."""
    input:
        model="results/{dataset}/text/truecaser.{lang}.json",
        text="results/{dataset}/text/{split}.tok.{lang}",
    output:
        "results/{dataset}/text/{split}.true.{lang}",
    log:
        "logs/truecase/{dataset}/{split}/{lang}.log",
    benchmark:
        "results/benchmarks/truecase/{dataset}/{split}/{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.fingerprint("truecased"),
    shell:
        "docmt text truecase --model {input.model} --input {input.text} --out {output} --jobs {threads} 2> {log}"


rule learn_bpe:
    """Learn BPE merges on both sides of the training text."""
    input:
        # results/{dataset}/text/{split}.true.{lang} for all training splits and both languages
        inputs=plan.input("codes", "inputs"),
        # With `text.pretrained`: the model's config.json or files. `settings` contains the folder.
        pretrained=plan.input("codes", "pretrained"),
    output:
        "results/{dataset}/text/bpe.codes",
    log:
        "logs/learn_bpe/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_bpe/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    resources:
        **scale_with_attempt(mem_mb=8000, runtime=240),
    params:
        fingerprint=plan.fingerprint("codes"),
        settings=plan.settings("codes"),
        languages=plan.params("codes", "src_lang", "tgt_lang"),
    shell:
        "docmt text learn-bpe --settings {params.settings:q} --inputs {input.inputs} {params.languages}"
        " --out {output} 2> {log}"


rule apply_bpe:
    """Split one side of a split into subwords."""
    input:
        codes="results/{dataset}/text/bpe.codes",
        text="results/{dataset}/text/{split}.true.{lang}",
    output:
        "results/{dataset}/text/{split}.bpe.{lang}",
    log:
        "logs/apply_bpe/{dataset}/{split}/{lang}.log",
    benchmark:
        "results/benchmarks/apply_bpe/{dataset}/{split}/{lang}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    threads: text_job_threads
    params:
        fingerprint=plan.fingerprint("subwords"),
    shell:
        "docmt text apply-bpe --codes {input.codes} --lang {wildcards.lang} --input {input.text} --out {output}"
        " --jobs {threads} 2> {log}"


rule learn_vocabulary:
    """List the subwords on both sides of the training text."""
    input:
        # results/{dataset}/text/{split}.bpe.{lang} for all training splits and both languages
        inputs=plan.input("vocabulary", "inputs"),
        pretrained=plan.input("vocabulary", "pretrained"),  # as in `learn_bpe`
    output:
        "results/{dataset}/text/vocabulary.txt",
    log:
        "logs/learn_vocabulary/{dataset}.log",
    benchmark:
        "results/benchmarks/learn_vocabulary/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("vocabulary"),
        tags=plan.params("vocabulary", "tags"),  # both languages, for datasets with pre-training data
        # Only with `text.pretrained`.
        pretrained=plan.params(
            "vocabulary", "pretrained", "keep", "src_lang", "tgt_lang"
        ),
    shell:
        "docmt text learn-vocabulary --inputs {input.inputs} {params.tags} {params.pretrained} --out {output} 2> {log}"


rule save_pipeline:
    """Pack settings, truecasers and BPE codes into one file."""
    input:
        truecasers=collect(
            "results/{{dataset}}/text/truecaser.{lang}.json", lang=plan.languages
        ),
        codes="results/{dataset}/text/bpe.codes",
    output:
        "results/{dataset}/text/pipeline.json",
    log:
        "logs/save_pipeline/{dataset}.log",
    benchmark:
        "results/benchmarks/save_pipeline/{dataset}.tsv"
    priority: 30
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("pipeline"),
        settings=plan.settings("pipeline"),
        languages=plan.params("pipeline", "src_lang", "tgt_lang"),
    shell:
        "docmt text save-pipeline --settings {params.settings:q} {params.languages} --truecasers {input.truecasers}"
        " --codes {input.codes} --out {output} 2> {log}"


rule count_roundtrip:
    """Count the lines that are restored from subwords without changes."""
    input:
        # results/{dataset}/corpora/{src}-{tgt}/{split}.{lang} for development and test splits
        texts=plan.input("roundtrip", "texts"),
        pipeline="results/{dataset}/text/pipeline.json",
    output:
        "results/{dataset}/text/roundtrip.json",
    log:
        "logs/count_roundtrip/{dataset}.log",
    benchmark:
        "results/benchmarks/count_roundtrip/{dataset}.tsv"
    conda:
        "../../environment.yml"
    params:
        fingerprint=plan.fingerprint("roundtrip"),
    shell:
        "docmt text count-roundtrip --pipeline {input.pipeline} --inputs {input.texts} --out {output} > {log} 2>&1"
