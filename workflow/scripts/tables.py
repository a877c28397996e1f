"""Write the tables of the READMEs from the runs' files; with --check, only list the files that would change."""

import sys
from functools import partial
from pathlib import Path

from replication.files.paths import ROOT
from replication.files.storage import replacing
from replication.tables import (
    architectures,
    attention,
    bleu,
    blocks,
    characters,
    claims,
    columns,
    cpu,
    decided,
    durations,
    findings,
    forms,
    gpu,
    initialisation,
    kmeans,
    model_speed,
    normalizers,
    output_guarantee,
    perplexity,
    regimes,
    retrofit,
    speed,
)
from replication.tables.markers import with_tables

TIMED_MODELS = ("minilm", "minilm-entmax", "smollm2")
TABLES = {
    "adasplash-claims": attention.adasplash_claims,
    "adasplash-times": attention.adasplash_times,
    "architectures": architectures.counts,
    "attention-speed": attention.speed,
    "attention-softmax": attention.softmax_passes,
    "attention-targets": attention.targets,
    "bleu": bleu.bleu,
    "bleu-darby": bleu.darby,
    "bleu-demo": bleu.demo,
    "bleu-multi30k": bleu.multi30k,
    "blocks": partial(blocks.blocks, "brown"),
    "blocks-512": partial(blocks.blocks, "brown-512"),
    "characters": partial(characters.table3, "war-and-peace-512"),
    "characters-spans": partial(characters.table3, "war-and-peace-spans"),
    "characters-baselines": partial(characters.baselines, "war-and-peace-512", "war-and-peace"),
    "claims": claims.counts,
    "demonstration": claims.demonstration,
    "lost-at-gold": claims.lost_at_gold,
    "main-claims": claims.main,
    "verdicts": claims.verdicts,
    "claims-characters": decided.characters,
    "claims-documents": decided.documents,
    "claims-forms": decided.forms,
    "claims-masked-lm": decided.masked_lm,
    "claims-translation": decided.translation,
    "cpu-encoder": cpu.encoder,
    "cpu-encoder-training": cpu.training,
    "cpu-milliseconds": cpu.milliseconds,
    "cpu-supports": cpu.supports,
    "cpu-targets": cpu.targets,
    "findings": findings.findings,
    "forms": forms.table1,
    "forms-chapters": forms.chapters,
    "forms-darby": forms.darby,
    "forms-tested-fully": forms.tested_fully,
    "judged-brown": partial(claims.judged, "brown", ("sparse-consistency", "mlm-", "blocks-")),
    "judged-brown-512": partial(claims.judged, "brown-512", ("sparse-consistency", "mlm-", "blocks-")),
    "gpu-decoding": gpu.decoding,
    "gpu-default-encoder": gpu.default_encoder,
    "gpu-page-selection": gpu.page_selection,
    "gpu-encoder": gpu.encoder,
    "initialisation": initialisation.initialisation,
    "judged-brown-512-seed1": partial(claims.judged, "brown-512-seed1", ("sparse-consistency", "mlm-", "blocks-")),
    "judged-brown-512-untied": partial(claims.judged, "brown-512-untied", ("sparse-consistency", "mlm-")),
    "judged-brown-512-untied-seed1": partial(claims.judged, "brown-512-untied-seed1", ("sparse-consistency", "mlm-")),
    "judged-brown-512-minilm": partial(claims.judged, "brown-512-minilm", ("sparse-consistency", "mlm-")),
    "judged-brown-512-minilm-seed1": partial(claims.judged, "brown-512-minilm-seed1", ("sparse-consistency", "mlm-")),
    "judged-demo": partial(
        claims.judged,
        "demo",
        ("sparse-consistency", "mlm-", "blocks-", "mt-", "clm-", "est-", "xst-", "fac-", "retrofit-"),
    ),
    "judged-demo-seed1": partial(claims.judged, "demo-seed1", ("sparse-consistency", "mlm-", "blocks-")),
    "judged-darby": partial(claims.judged, "darby", ("mt-",)),
    "judged-darby-softmax": partial(claims.judged, "darby-softmax", ("mt-",)),
    "judged-darby-en-de": partial(claims.judged, "darby-en-de", ("mt-",)),
    "judged-darby-documents": partial(claims.judged, "darby-documents", ("xst-",)),
    "judged-darby-near-gold": partial(claims.judged, "darby-near-gold", ("mt-",)),
    "judged-darby-forms": partial(claims.judged, "darby-forms", ("est-",)),
    "judged-minilm": partial(claims.judged, "minilm", ("retrofit-",)),
    "judged-multi30k": partial(claims.judged, "multi30k", ("mt-",)),
    "judged-multi30k-forms": partial(claims.judged, "multi30k-forms", ("est-", "xst-")),
    "judged-multi30k-speed": partial(claims.judged, "multi30k-speed", ("est-",)),
    "judged-war-and-peace-512": partial(claims.judged, "war-and-peace-512", ("clm-",)),
    "judged-war-and-peace-spans": partial(claims.judged, "war-and-peace-spans", ("clm-",)),
    "abstract-claims": claims.abstracts,
    "regimes": regimes.regimes,
    "kmeans": kmeans.projections,
    "longest-steps": durations.longest,
    "normalizers": normalizers.table25,
    "output-guarantee": output_guarantee.certified,
    "output-guarantee-minilm": partial(output_guarantee.sentence, "minilm"),
    "perplexity": perplexity.perplexity,
    "perplexity-demo": partial(perplexity.perplexity, ("demo",)),
    "perplexity-demo-seed1": partial(perplexity.perplexity, ("demo-seed1/masked_lm",)),
    "perplexity-brown": partial(perplexity.perplexity, ("brown/masked_lm",)),
    "perplexity-brown-512": partial(perplexity.perplexity, ("brown-512/masked_lm",)),
    "perplexity-brown-512-seed1": partial(perplexity.perplexity, ("brown-512-seed1/masked_lm",)),
    "perplexity-brown-512-untied": partial(perplexity.perplexity, ("brown-512-untied/masked_lm",)),
    "perplexity-brown-512-untied-seed1": partial(perplexity.perplexity, ("brown-512-untied-seed1/masked_lm",)),
    "perplexity-brown-512-minilm": partial(perplexity.perplexity, ("brown-512-minilm/masked_lm",)),
    "perplexity-brown-512-minilm-seed1": partial(perplexity.perplexity, ("brown-512-minilm-seed1/masked_lm",)),
    "retrofit": retrofit.leaders,
    "retrofit-tuned": retrofit.tuned,
    "run-columns": columns.columns,
    "run-tables": columns.kinds_of_tables,
    "speed": speed.speed,
    **{f"speed-{model}": partial(model_speed.times, model) for model in TIMED_MODELS},
    **{f"speed-{model}-ratios": partial(model_speed.ratios, model) for model in TIMED_MODELS},
    **{f"speed-{model}-recall": partial(model_speed.recalls, model) for model in TIMED_MODELS},
    "speed-tuning": partial(model_speed.tuning, *TIMED_MODELS),
}
RUNS = (
    "brown",
    "brown-512",
    "brown-512-seed1",
    "brown-512-untied",
    "brown-512-untied-seed1",
    "brown-512-minilm",
    "brown-512-minilm-seed1",
    "demo",
    "demo-seed1",
    "darby",
    "darby-documents",
    "darby-en-de",
    "darby-forms",
    "darby-near-gold",
    "darby-softmax",
    "minilm",
    "multi30k",
    "multi30k-forms",
    "multi30k-speed",
    "war-and-peace-512",
    "war-and-peace-spans",
)
TEXTS = (
    "README.md",
    "docs/findings.md",
    "docs/limits.md",
    "docs/speed.md",
    "docs/start.md",
    "docs/tables.md",
    "docs/your-model.md",
    "reported/README.md",
    "benchmarks/README.md",
    *(f"reported/{run}/README.md" for run in RUNS),
)


def changed() -> dict[Path, str]:
    """Return the new text of every README in which a table changes, by path."""
    current = {ROOT / name: (ROOT / name).read_text(encoding="utf-8") for name in TEXTS}
    new = {path: with_tables(text, TABLES) for path, text in current.items()}
    return {path: text for path, text in new.items() if text != current[path]}


def main() -> None:
    """Write the changed READMEs, or exit with status 1 if there are any and --check is given."""
    texts = changed()
    for path, text in texts.items():
        print(f"{path.relative_to(ROOT)}: tables must match the runs' files, got outdated ones")
        if "--check" not in sys.argv:
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
    if texts and "--check" in sys.argv:
        sys.exit(1)


if __name__ == "__main__":
    main()
