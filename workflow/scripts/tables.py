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
#: Stored runs, each of which has a page.
RUNS = sorted(path.parent.name for path in (ROOT / "reported").glob("*/README.md"))
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
    "at-a-glance": claims.at_a_glance,
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
    "cpu-busy": cpu.busy,
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
    "gpu-decoding": gpu.decoding,
    "gpu-default-encoder": gpu.default_encoder,
    "gpu-page-selection": gpu.page_selection,
    "gpu-encoder": gpu.encoder,
    "initialisation": initialisation.initialisation,
    "abstract-claims": claims.abstracts,
    "regimes": regimes.regimes,
    "kmeans": kmeans.projections,
    "longest-steps": durations.longest,
    "normalizers": normalizers.table25,
    "output-guarantee": output_guarantee.certified,
    "output-guarantee-minilm": partial(output_guarantee.sentence, "minilm"),
    "perplexity": perplexity.perplexity,
    "retrofit": retrofit.leaders,
    "retrofit-tuned": retrofit.tuned,
    "run-columns": columns.columns,
    "run-tables": columns.kinds_of_tables,
    "speed": speed.speed,
    **{f"judged-{run}": partial(claims.judged, run) for run in RUNS},
    **{f"perplexity-{name.partition('/')[0]}": partial(perplexity.perplexity, (name,)) for name in perplexity.FOLDERS},
    **{f"speed-{model}": partial(model_speed.times, model) for model in TIMED_MODELS},
    **{f"speed-{model}-ratios": partial(model_speed.ratios, model) for model in TIMED_MODELS},
    **{f"speed-{model}-recall": partial(model_speed.recalls, model) for model in TIMED_MODELS},
    "speed-tuning": partial(model_speed.tuning, *TIMED_MODELS),
}
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
