"""Notebooks of a run, and the files that they and the ledger read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from replication.config import Config, Section
from replication.run.layout import (
    ALL_SPLITS,
    CAPTIONER_TABLES,
    FORM_TABLES,
    SPLITS,
    Captioning,
    GraphTask,
    MaskedLM,
    NormalizerSpeed,
    ParallelText,
    Retrofit,
    Symbols,
    Translation,
    reach_table,
    results_folder,
    scaling_table,
)
from replication.run.trained import cells, members, symbol_lms

PUBLISHED = Path("config/published")
#: Stored measurements of paths with a guaranteed output.
OUTPUT_PATHS = [Path(f"benchmarks/results/output_guarantee_{model}.json") for model in ("entmax", "minilm")]
#: Stored measurements of selection rules on a decoder.
DECODER = Path("benchmarks/results/decoder_selection.json")


@dataclass(frozen=True)
class Notebook:
    """Notebook that draws a figure or shows a table."""

    name: str
    reads: list[Path]
    is_figure: bool = True
    #: Name of the notebook file, if several figures share one.
    template: str = ""
    parameters: dict[str, object] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the notebook's place in the repository."""
        return f"notebooks/{self.template or self.name}.ipynb"


def figure(name: str, reads: list[Path], **others) -> Notebook:
    """Return a notebook that draws a figure."""
    return Notebook(name, reads, **others)


def table(name: str, reads: list[Path]) -> Notebook:
    """Return a notebook that shows a table."""
    return Notebook(name, reads, is_figure=False)


def notebooks(run: Config, reported: list[str]) -> Iterator[Notebook]:
    """Yield every figure and table whose measurements a configuration makes.

    Parameters
    ----------
    run : Config
        Configuration of the run.
    reported : list of str
        Names of the stored runs, whose ledgers are shown beside this run's.
    """
    results = results_folder(run.profile)
    yield from (figure(f"factorised/{name}", []) for name in ("fig03_strided", "fig05_fixed", "reach"))
    sections = {
        "masked_lm": _masked_lm,
        "translation": _translation,
        "char_lm": _char_lm,
        "patterns": _patterns,
        "forms": _forms,
        "captioning": _captioning,
        "normalizer_speed": _normalizer_speed,
        "scaling": _scaling,
        "retrofit": _retrofit,
    }
    for name, of_section in sections.items():
        if getattr(run, name) is not None:
            yield from of_section(run, results)
    ledgers = [Path("reported", name, "claims.csv") for name in reported]
    yield table("claims", [results / "claims.csv", PUBLISHED / "claims.csv", *ledgers])


def measured(run: Config) -> list[Path]:
    """Return every table that the ledger's rules read."""
    results, seeds = results_folder(run.profile), run.student_seeds
    found = [reach_table(run.profile)]
    if run.masked_lm:
        files = MaskedLM(results / "masked_lm")
        found += [files.sweep(method) for method in run.masked_lm.methods]
        found += [path(seed) for path in (files.replaced, files.losses) for seed in seeds]
        found += [files.perplexity, files.coreference, files.tags, files.model_file("training.json")]
        if run.masked_lm.blocks:
            sizes = run.masked_lm.blocks.sizes
            found += _block_tables(run, files)
            found += [files.block_losses(size, seed) for size in sizes for seed in seeds]
    if run.translation:
        for pair in run.translation.corpus:
            files = Translation(results / "translation" / pair)
            found += [*_of_pair(run, files), *(files.sentences(seed) for seed in seeds)]
    for folder, section in symbol_lms(run).items():
        found += _of_models(results / folder, section, "log.csv", "measured.csv", "segments.parquet")
    for place in _pattern_files(run, results):
        found += [place.parts, place.steps]
    for unit in members(run.forms):
        found += _form_tables(run, results, unit)
    if run.captioning:
        found += _captions(run, Captioning(results / "captioning"))
    if run.normalizer_speed:
        files = NormalizerSpeed(results / "normalizer_speed")
        found += [files.table, files.sentences]
    if run.retrofit:
        files = Retrofit(results / "retrofit")
        found += [files.rules, *_tuned(run, files)]
    return found


def _graphs(run: Config, files: GraphTask, layers: int) -> list[Path]:
    """Return the files of a task's graphs, projections and centroids."""
    graphs = [files.graphs(split, layer) for split in SPLITS for layer in range(layers)]
    return [*graphs, *(kind(seed) for kind in (files.projections, files.centroids) for seed in run.student_seeds)]


def _block_tables(run: Config, files: MaskedLM) -> list[Path]:
    sizes = run.masked_lm.blocks.sizes
    evaluated = [files.blocks_evaluated(size, seed) for size in sizes for seed in run.student_seeds]
    return [*evaluated, *(files.blocks_timed(size) for size in sizes)]


def _masked_lm(run: Config, results: Path) -> Iterator[Notebook]:
    files, seeds = MaskedLM(results / "masked_lm"), run.student_seeds
    graphs = _graphs(run, files, run.masked_lm.layers)
    sequences = [*graphs, *(files.tokens(split) for split in SPLITS), files.tokenizer]
    sweeps = [files.sweep(method) for method in run.masked_lm.methods]
    replaced = [*(files.replaced(seed) for seed in seeds), *(files.losses(seed) for seed in seeds)]
    yield figure("00_patterns", sequences)
    for name in ("fig01_selection", "fig02_pipeline", "fig03_forms"):
        yield figure(f"extremely_sparse/{name}", sequences)
    yield figure("sparsefinder/fig01_method", sequences)
    yield figure("sparsefinder/fig04_tradeoff", [*sweeps, *replaced, files.perplexity])
    yield figure("sparsefinder/fig10_heads", sweeps)
    yield table(
        "sparsefinder/tables_masked_lm", [*sweeps, *graphs, files.perplexity, files.model_file("training.json")]
    )
    yield figure("sparsefinder/fig05_coreference", [*sequences, *sweeps, files.coreference])
    yield figure("sparsefinder/fig06_parts_of_speech", [files.tags])
    if run.masked_lm.blocks:
        for name in ("fig07_efficient", "fig13_efficient_blocks"):
            yield figure(f"sparsefinder/{name}", _block_tables(run, files))


def _of_pair(run: Config, files: Translation) -> list[Path]:
    sweeps = [files.sweep(method) for method in run.translation.methods]
    return [*sweeps, *(files.replaced(seed) for seed in run.student_seeds), files.bleu]


def _translation(run: Config, results: Path) -> Iterator[Notebook]:
    pairs = {pair: Translation(results / "translation" / pair) for pair in run.translation.corpus}
    of_pair = {pair: _of_pair(run, files) for pair, files in pairs.items()}
    layers = run.translation.architecture.decoder_layers
    graphs = {
        pair: [*_graphs(run, files, layers), *(files.graph_sentences(split) for split in SPLITS)]
        for pair, files in pairs.items()
    }
    # These notebooks read the files of every pair that they find, so they wait for all pairs.
    every_pair = [path for paths in of_pair.values() for path in paths]
    sentences = [files.sentences(seed) for files in pairs.values() for seed in run.student_seeds]
    yield figure("sparsefinder/fig02_translation", every_pair + sentences)
    described = [path for pair, files in pairs.items() for path in (*graphs[pair], *_text_of_pair(files, pair))]
    yield table("sparsefinder/tables_translation", every_pair + described)
    # The paper's Figures 8 and 11 show en-de, and Figures 3, 9 and 12 show en-fr. With two other pairs, the
    # alphabetically first one replaces en-de. A single pair gets only its own figures, because the others would repeat it under
    # another name.
    places = {"en-de": min(pairs), "en-fr": max(pairs)}
    if len(pairs) == 1:
        del places["en-de" if list(pairs) == ["en-fr"] else "en-fr"]
    has_kmeans = any(method.predictor == "Clustering" for method in run.translation.methods.values())
    for name, template, place, parameters in (
        ("fig08_heads", "fig08_heads", "en-de", {}),
        ("fig09_heads", "fig08_heads", "en-fr", {}),
        ("fig03_maps", "fig03_maps", "en-fr", {"first": 0, "count": 2}),
        ("fig11_maps", "fig03_maps", "en-de", {"first": 0, "count": 4, "length": 16}),
        ("fig12_maps", "fig03_maps", "en-fr", {"first": 2, "count": 4, "length": 16}),
    ):
        # The maps show k-means.
        if place in places and (template != "fig03_maps" or has_kmeans):
            pair = places[place]
            parameters = {"figure": name, "pair": pair, **parameters}
            template = f"sparsefinder/{template}"
            reads = of_pair[pair] + (graphs[pair] if template == "sparsefinder/fig03_maps" else [])
            yield figure(f"sparsefinder/{name}", reads, template=template, parameters=parameters)


def _text_of_pair(files: Translation, pair: str) -> list[Path]:
    corpus = [files.corpus(split, language) for split in ALL_SPLITS for language in pair.split("-")]
    return [*corpus, files.model_file("training.json")]


def _of_models(folder: Path, section: Section, *names: str) -> list[Path]:
    return [
        Symbols(folder / corpus).model(model, seed) / name
        for corpus in section.corpora
        for model in members(section.models)
        for seed in section.seeds
        for name in names
    ]


def _char_lm(run: Config, results: Path) -> Iterator[Notebook]:
    section, folder = run.char_lm, results / "char_lm"
    texts = [path for corpus in section.corpora for path in _text_tables(Symbols(folder / corpus))]
    scores, published = _of_models(folder, section, "measured.csv"), PUBLISHED / "extremely_sparse_table3.csv"
    logs, models = _of_models(folder, section, "log.csv"), members(section.models).keys()
    if models >= {"adaptive-span", "adaptive-span-top-32", "adaptive-span-top-8"}:
        yield figure("extremely_sparse/table4_spans", [*logs, PUBLISHED / "extremely_sparse_table4.csv"])
    yield table("extremely_sparse/table3_characters", [*scores, *texts, published])
    if models >= {"transformer-xl", "transformer-xl-top-k"}:
        yield table("explicit_sparse/table23_characters", [*scores, published])


def _text_tables(files: Symbols) -> list[Path]:
    return [files.baselines, files.summary]


def _pattern_files(run: Config, results: Path) -> list[Symbols]:
    kinds = members(run.patterns)
    return [
        Symbols(results / "patterns" / kind / corpus) for kind, section in kinds.items() for corpus in section.corpora
    ]


def _patterns(run: Config, results: Path) -> Iterator[Notebook]:
    parts = [path for files in _pattern_files(run, results) for path in (files.parts, files.steps)]
    scores = [
        path
        for kind, section in members(run.patterns).items()
        for path in _of_models(results / "patterns" / kind, section, "measured.csv")
    ]
    yield figure("factorised/trained", parts + scores)


def _form_tables(run: Config, results: Path, unit: str, names: tuple[str, ...] = FORM_TABLES) -> list[Path]:
    section = members(run.forms)[unit]
    return [
        ParallelText(results / "forms" / unit / pair).cell(cell.name) / name
        for pair in section.corpus
        for cell in cells(section)
        for name in names
    ]


def _forms(run: Config, results: Path) -> Iterator[Notebook]:
    units = members(run.forms)
    if "sentences" in units:
        tables = _form_tables(run, results, "sentences")
        seeds = {form: set() for form in ("Full", "Top-k")}
        for cell in cells(units["sentences"]):
            seeds.get(cell.form, set()).add(cell.seed)
        # The notebooks of Explicit Sparse Transformer compare these two forms.
        if seeds["Full"] & seeds["Top-k"]:
            yield figure("explicit_sparse/fig27_budget", tables)
            maps = _form_tables(run, results, "sentences", ("map.safetensors",))
            yield figure("explicit_sparse/fig33_maps", [*tables, *maps])
            yield table("explicit_sparse/tables_translation", tables)
        yield table("extremely_sparse/table1_sentences", [*tables, PUBLISHED / "extremely_sparse_table1.csv"])
    if "documents" in units:
        tables = _form_tables(run, results, "documents")
        yield table("extremely_sparse/table2_documents", [*tables, PUBLISHED / "extremely_sparse_table2.csv"])


def _captions(run: Config, files: Captioning) -> list[Path]:
    section = run.captioning
    return [
        files.model(model, seed) / name
        for model in members(section.models)
        for seed in section.seeds
        for name in CAPTIONER_TABLES
    ]


def _captioning(run: Config, results: Path) -> Iterator[Notebook]:
    files = Captioning(results / "captioning")
    drawn = [files.regions] if run.captioning.source.source == "scenes" else []
    reads = [*_captions(run, files), files.pictures("test"), *drawn, PUBLISHED / "explicit_sparse_table17.csv"]
    yield figure("explicit_sparse/table17_captioning", reads)


def _normalizer_speed(run: Config, results: Path) -> Iterator[Notebook]:
    files = NormalizerSpeed(results / "normalizer_speed")
    yield table("explicit_sparse/table25_speed", [files.table, files.details])


def _scaling(run: Config, results: Path) -> Iterator[Notebook]:
    yield figure("sparsefinder/scaling", [scaling_table(run.profile)])


def _tuned(run: Config, files: Retrofit) -> list[Path]:
    return [files.sparsified(recall) / "measured.parquet" for recall in run.retrofit.recalls]


def _retrofit(run: Config, results: Path) -> Iterator[Notebook]:
    files = Retrofit(results / "retrofit")
    tables = [files.rules, *_tuned(run, files)]
    yield figure("retrofit/01_recall", tables)
    yield figure("retrofit/02_drift", tables)
    heads = [files.sparsified(recall) / "sparsified.safetensors" for recall in run.retrofit.recalls]
    yield table("retrofit/03_heads", [*tables, *heads, files.learning])
    yield figure("retrofit/04_output", OUTPUT_PATHS)
    yield figure("retrofit/05_decoder", [DECODER])
