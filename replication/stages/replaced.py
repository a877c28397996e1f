"""Score models under predicted graphs."""

from collections.abc import Iterable
from pathlib import Path

from replication.files.verification import inputs
from replication.stages.options import ConfigFile, TranslatorPlace


def replace(config: ConfigFile) -> None:
    """Measure perplexity with predicted graphs in place of gold ones, in all layers and heads at once, from every seed."""
    from replication.corpora.tokens import load_tokenizer
    from replication.files.storage import write_table
    from replication.graphs.replaced import Replacements
    from replication.masked_lm.evaluation import evaluate_replaced, read_masked_text
    from replication.masked_lm.model import load_entmax_model
    from replication.results.settings import as_columns
    from replication.run.places import masked_lm
    from replication.steps import receive

    run = receive(config, "replace")
    section, files = masked_lm(run)
    inputs(files.model.parent, files.tokenizer, files.tokenizer.parent, files.tokens("valid"))
    network, control = load_entmax_model(files.model.parent)
    tokenizer = load_tokenizer(files.tokenizer.parent)
    masking = section.evaluation.given()
    text = read_masked_text(files.tokens("valid"), tokenizer, masking)
    members = _members(section, files)
    students = _students(files, section.layers, run.student_seeds, members)
    replacements = Replacements(students, members, section.global_tokens)
    table, losses = evaluate_replaced(network, control, text, replacements, masking["batch_size"])
    table["global_tokens"] = section.global_tokens
    for seed in run.student_seeds:
        write_table(files.losses(seed), as_columns(losses[losses["seed"] == seed]))
        write_table(files.replaced(seed), as_columns(table[table["seed"] == seed]))


def decode(task: TranslatorPlace, config: ConfigFile) -> None:
    """Measure BLEU with predicted graphs in the decoder's self-attention, in all layers and heads, from every seed."""
    from replication.files.storage import write_table
    from replication.graphs.replaced import Replacements
    from replication.results.settings import as_columns
    from replication.run.places import translator
    from replication.steps import receive
    from replication.translation.evaluation import evaluate_replaced
    from replication.translation.model import BATCH_TOKENS, load_translator

    run = receive(config, "decode", place=task)
    section, files, (_, target) = translator(run, task)
    references, sentences = files.corpus("test", target), section.decoding.sentences
    inputs(files.model, files.data, references)
    loaded = load_translator(files.model, files.data)
    members = _members(section, files)
    students = _students(files, section.architecture.decoder_layers, run.student_seeds, members)
    table, counts = evaluate_replaced(
        loaded,
        "test",
        references.read_text(encoding="utf-8").splitlines()[:sentences],
        Replacements(students, members, section.global_tokens),
        section.decoding.beam,
        # A batch holds its sentences once for every graph of a member of the grid.
        8 * BATCH_TOKENS,
    )
    table = table.assign(global_tokens=section.global_tokens, sentences=sentences)
    for seed in run.student_seeds:
        write_table(files.sentences(seed), as_columns(counts[counts["seed"] == seed]))
        write_table(files.replaced(seed), as_columns(table[table["seed"] == seed]))


def _members(section, files):
    """Return the members of the grid with their windows: as configured, or those that the recall sweep has at each budget."""
    from replication.graphs.grids import expand
    from replication.results.budgets import budgets_of
    from replication.results.chosen import chosen
    from replication.results.points import over_heads, over_seeds
    from replication.results.settings import read_points

    grid = section.replaced
    if not grid.budgets:
        return [(member, list(grid.windows)) for member in expand(grid.given()["methods"])]
    paths = [files.sweep(name) for name in section.methods]
    inputs(*paths)
    swept = over_seeds(over_heads(read_points(paths)))
    points = chosen(swept, budgets_of(1 - swept["gold_sparsity"].mean(), grid.budgets))
    members = [
        (member, sorted(window for *key, window in points if key == [member.method, member.setting]))
        for member in expand(section.given()["methods"])
    ]
    return [(member, windows) for member, windows in members if windows]


def _students(files, layers: int, seeds: Iterable[int], members):
    """Return projections, centroids and fitted members of the grid of all layers, by the seed.

    Raises
    ------
    FileNotFoundError
        If a layer has none.
    """
    from replication.graphs import centroids, projections
    from replication.graphs.replaced import ModelStudents
    from replication.graphs.shards import open_graphs
    from replication.run.layout import layer_file

    students, fitted = {}, [member for member, _ in members if member.fits]
    if fitted:
        inputs(*(files.graphs("train", layer) for layer in range(layers)))
    for seed in seeds:
        names = [layer_file(layer) for layer in range(layers)]
        learned: list[Path] = [files.projections(seed) / name for name in names]
        found: list[Path] = [files.centroids(seed) / name for name in names]
        inputs(*learned, *found)
        students[seed] = ModelStudents(
            [projections.load(path) for path in learned], [centroids.load(path) for path in found]
        )
        for layer, of_layer in enumerate(students[seed].centroids if fitted else ()):
            with open_graphs(files.graphs("train", layer)) as train:
                batches, projection = train.batches(centroids.BATCH_SIZE), students[seed].projections[layer]
                of_layer |= centroids.fit_members(fitted, batches, projection, seed)
    return students
