"""The patterns of Sparse Transformers, which depend on positions alone: no model is trained for them."""

REACH = f"{RESULTS}/factorised/reach.csv"


rule factorised:
    input:
        code=closure("factorised"),
    output:
        REACH,
    log:
        f"{RESULTS}/logs/factorised.log",
    resources:
        **needs("factorised"),
    message:
        "Follow information through factorised attention"
    shell:
        "replicate factorised --output {output} > {log} 2>&1"


FIGURES["factorised/fig03_strided"] = []
FIGURES["factorised/fig05_fixed"] = []
FIGURES["factorised/reach"] = []
MEASURED += [REACH]
