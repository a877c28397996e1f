"""Predict blocks, and measure time."""

from collections.abc import Iterator

from replication.files.verification import inputs
from replication.stages.options import ConfigFile, SymbolsPlace, Threads


def fit_blocks(config: ConfigFile) -> None:
    """Learn projections of chunks of every size, and their centroids for every number of clusters, in all layers."""
    from itertools import product

    from replication.graphs import centroids, projections
    from replication.graphs.shards import open_graphs
    from replication.run.places import predicted_blocks
    from replication.steps import receive
    from sparselib.blocks.chunks import Chunks

    run = receive(config, "fit_blocks")
    section, files = predicted_blocks(run)
    blocks, settings, points = section.blocks, section.projection.given(), section.cluster_points
    inputs(*(files.graphs("train", layer) for layer in range(section.layers)))
    for layer in range(section.layers):
        with open_graphs(files.graphs("train", layer)) as graphs:
            edges = {size: {} for size in blocks.sizes}
            for size, seed in product(blocks.sizes, run.student_seeds):
                chunks = Chunks(size, blocks.pooling)
                projection, losses = projections.fit_layer_projection(graphs, settings, seed, chunks, edges[size])
                fitted = centroids.fit_block_layer(graphs, projection, chunks, list(blocks.clusters), points, seed)
                header = {"block_size": size, "pooling": chunks.pooling, "seed": seed, "layer": graphs.header["layer"]}
                path = files.block_student(size, seed, "projections", layer)
                projections.save(path, projection, settings=settings, losses=losses, **header)
                centroids.save(files.block_student(size, seed, "centroids", layer), fitted, points=points, **header)


def evaluate_blocks(config: ConfigFile) -> None:
    """Measure perplexity when every layer visits predicted, random or all blocks, of every size and from every seed."""
    from itertools import product

    from replication.corpora.tokens import load_tokenizer
    from replication.files.storage import write_table
    from replication.masked_lm import blocks as masked_lm_blocks
    from replication.masked_lm.evaluation import read_masked_text, sequence_losses
    from replication.masked_lm.model import load_entmax_model
    from replication.run.places import predicted_blocks
    from replication.steps import receive
    from sparselib.blocks.chunks import Chunks

    run = receive(config, "evaluate_blocks")
    section, files = predicted_blocks(run)
    _check_block_inputs(run)
    network, control = load_entmax_model(files.model.parent)
    masking = section.evaluation.given()
    text = read_masked_text(files.tokens("valid"), load_tokenizer(files.tokenizer.parent), masking)
    full = sequence_losses(network, text, masking["batch_size"])
    for size, seed in product(section.blocks.sizes, run.student_seeds):
        chunks = Chunks(size, section.blocks.pooling)
        variants = _variants(run, network, text, chunks, seed)
        table, losses = masked_lm_blocks.evaluate_blocks(
            network, control, text, chunks, variants, masking["batch_size"], full
        )
        for columns in (table, losses):
            columns.insert(0, "seed", seed)
        write_table(files.block_losses(size, seed), losses)
        write_table(files.blocks_evaluated(size, seed), table)


def time_blocks(config: ConfigFile) -> None:
    """Time predicting blocks of every size, attending to them, and the whole model, in seconds per sequence."""
    import torch

    from replication.corpora.tokens import load_tokenizer
    from replication.files.provenance import hardware
    from replication.files.storage import write_table
    from replication.masked_lm import blocks as masked_lm_blocks
    from replication.masked_lm.evaluation import read_masked_text
    from replication.masked_lm.model import load_entmax_model
    from replication.run.places import predicted_blocks
    from replication.steps import receive
    from sparselib.blocks.chunks import Chunks

    run = receive(config, "time_blocks")
    section, files = predicted_blocks(run)
    _check_block_inputs(run)
    network, control = load_entmax_model(files.model.parent)
    masking, repeats = section.evaluation.given(), section.blocks.repeats
    text = read_masked_text(files.tokens("valid"), load_tokenizer(files.tokenizer.parent), masking)
    first = text.inputs[: masking["batch_size"]]
    batch = {"batch_size": first.shape[0], "length": first.shape[1], "repeats": repeats}
    for size in section.blocks.sizes:
        chunks = Chunks(size, section.blocks.pooling)
        variants = _variants(run, network, text, chunks, run.student_seeds[0])
        table = masked_lm_blocks.time_blocks(network, control, first, chunks, variants, repeats)
        write_table(files.blocks_timed(size), table.assign(**batch, device=hardware(), threads=torch.get_num_threads()))


def time_steps(place: SymbolsPlace, config: ConfigFile) -> None:
    """Time training steps of models that were trained alike, one beside the other."""
    from replication.char_lm.data import read_streams
    from replication.char_lm.models import load_model
    from replication.char_lm.step_time import step_seconds
    from replication.char_lm.training import Recipe
    from replication.files.contents import read_json
    from replication.files.provenance import hardware
    from replication.files.storage import write_table
    from replication.run.layout import CHARACTER_FILES
    from replication.run.places import symbol_place
    from replication.run.trained import members
    from replication.steps import receive

    section, files = symbol_place(receive(config, "time_steps", place=place), place)
    folders = {name: files.model(name, section.seeds[0]) for name in members(section.models)}
    inputs(files.text("train"), *(folder / file for folder in folders.values() for file in CHARACTER_FILES))
    runs = {name: read_json(folder / "training.json") for name, folder in folders.items()}
    first = next(iter(runs))
    for name, run in runs.items():
        if any(run[key] != runs[first][key] for key in ("recipe", "rows")):
            raise ValueError(f"{name}: must be trained with the recipe and rows of {first} to be timed beside it")
    recipe, rows = Recipe(**runs[first]["recipe"]), runs[first]["rows"]
    _, streams = read_streams(files.text("train").parent, {"train": rows["train"]}, recipe.length)
    models = {name: load_model(folder / "model.safetensors")[0] for name, folder in folders.items()}
    table = step_seconds(models, streams["train"], recipe, section.timed_steps)
    write_table(files.steps, table.assign(device=hardware()))


def normalizer_speed(config: ConfigFile) -> None:
    """Measure speed, BLEU and attended keys of one translator with softmax, top-k, sparsemax and entmax."""
    from importlib.metadata import version

    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.run.text_places import ParallelPlace
    from replication.steps import receive
    from replication.translation.contenders import CONTENDERS
    from replication.translation.speed import measure

    text = ParallelPlace(receive(config, "normalizer_speed"), "normalizer_speed")
    section, files, references = text.section, text.files, text.files.corpus("test", text.pair[1])
    models = [contender.folder(files.models) / "model.safetensors" for contender in CONTENDERS]
    inputs(files.data, references, *models)
    given = section.given()
    settings = {key: given[key] for key in ("repeats", "beam", "batch")}
    expected = references.read_text(encoding="utf-8").splitlines()
    table, sentences, details = measure(files.data, expected, **settings, models=files.models)
    write_table(files.sentences, sentences)
    write_table(files.table, table)
    write_json(files.details, settings | {"entmax": version("entmax")} | details | provenance())


def scaling(config: ConfigFile, threads: Threads = 1) -> None:
    """Measure time and memory of block-sparse entmax attention and its peers against n; on a GPU if there is one."""
    import torch

    from replication.files.storage import write_table
    from replication.run.places import scaling
    from replication.steps import receive
    from replication.timing.contenders import untrained_prediction
    from replication.timing.scaling import measure

    run = receive(config, "scaling")
    section, path = scaling(run)
    settings = section.given()
    torch.set_num_threads(threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    shared = {"seed": run.seed, "device": device}
    sizes = [settings[name] for name in ("heads", "dimension", "block")]
    predict = untrained_prediction(*sizes, **settings.pop("predictor"), **shared, compiled=device != "cpu")
    # Dense attention has no blocks, and a prediction by itself no attention.
    table = measure(**settings, **shared, predict=predict)
    write_table(path, table)


def _check_block_inputs(run) -> None:
    """Verify what evaluating and timing blocks read."""
    from replication.run.places import masked_lm

    _, files = masked_lm(run)
    inputs(files.model.parent, files.tokenizer, files.tokenizer.parent, files.tokens("valid"))


def _variants(run, network, text, chunks, seed: int):
    """Return the ways to choose blocks of one size, with the students of one seed."""
    from replication.graphs import centroids, projections
    from replication.masked_lm.blocks import variants
    from replication.run.places import masked_lm

    section, files = masked_lm(run)

    def student_files(kind: str) -> Iterator:
        for layer in range(section.layers):
            path = files.block_student(chunks.size, seed, kind, layer)
            inputs(path)
            yield path

    return variants(
        network,
        text.inputs.shape[1],
        chunks,
        list(section.blocks.counts),
        list(section.blocks.clusters),
        section.blocks.metric,
        [projections.load(path) for path in student_files("projections")],
        [centroids.load(path) for path in student_files("centroids")],
        # Each layer draws its own random blocks, and no two seeds share a draw.
        seed * 1000,
        section.model.attention_alpha,
    )
