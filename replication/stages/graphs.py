"""Store attention graphs, learn from them, and measure predictions."""

from collections.abc import Callable, Iterable
from pathlib import Path

from replication.files.verification import inputs
from replication.stages.options import ConfigFile, GraphPlace, Methods, SymbolsPlace, TranslatorPlace


def extract(config: ConfigFile) -> None:
    """Store queries and keys of every layer of the masked language model, from which the gold graphs follow."""
    from replication.corpora.tokens import read_tokens
    from replication.graphs.shards import sample_sequences
    from replication.masked_lm.evaluation import extract_graphs
    from replication.masked_lm.model import load_entmax_model
    from replication.run.layout import SPLITS
    from replication.run.places import masked_lm
    from replication.steps import receive

    run = receive(config, "extract")
    section, files = masked_lm(run)
    inputs(files.model.parent, *(files.tokens(split) for split in SPLITS))
    ids = {split: read_tokens(files.tokens(split))["input_ids"] for split in SPLITS}
    network, control = load_entmax_model(files.model.parent)
    for split in SPLITS:
        sequence = sample_sequences(len(ids[split]), getattr(section.graphs, split), run.seed)
        extract_graphs(network, control, ids[split], sequence, files.graphs(split, 0).parent, batch_size=8)


def extract_decoder(place: TranslatorPlace, config: ConfigFile) -> None:
    """Store queries and keys of every layer of a translator's decoder self-attention."""
    from replication.files.storage import write_table
    from replication.run.layout import SPLITS
    from replication.run.places import translator
    from replication.steps import receive
    from replication.translation.evaluation import extract_decoder_graphs
    from replication.translation.model import BATCH_TOKENS, load_translator

    run = receive(config, "extract_decoder", place=place)
    section, files, _ = translator(run, place)
    inputs(files.model, files.data)
    loaded = load_translator(files.model, files.data)
    for split in SPLITS:
        count, shortest = getattr(section.graphs, split), section.graphs.longer_than
        folder = files.graphs(split, 0).parent
        text = extract_decoder_graphs(loaded, split, count, shortest, run.seed, BATCH_TOKENS, folder)
        write_table(files.graph_sentences(split), text)


def project(task: GraphPlace, config: ConfigFile) -> None:
    """Learn the projections of every layer, from every seed."""
    from replication.graphs import projections
    from replication.graphs.shards import open_graphs
    from replication.run.places import graph_task
    from replication.steps import receive

    run = receive(config, "project", place=task)
    section, files, layers = graph_task(run, task)
    settings = section.projection.given()
    paths = [files.graphs("train", layer) for layer in range(layers)]
    inputs(*paths)
    for path in paths:
        edges = {}
        with open_graphs(path) as layer:
            for seed in run.student_seeds:
                projection, losses = projections.fit_layer_projection(layer, settings, seed, edges=edges)
                header = {"settings": settings, "seed": seed, "losses": losses, "layer": layer.header["layer"]}
                projections.save(files.projections(seed) / path.name, projection, **header)


def cluster(task: GraphPlace, config: ConfigFile) -> None:
    """Find the centroids of every layer, for every number of clusters in the grid, from every seed."""
    from replication.graphs.centroids import fit_layer, save
    from replication.graphs.grids import cluster_counts
    from replication.graphs.projections import load as load_projection
    from replication.graphs.shards import open_graphs
    from replication.run.places import graph_task
    from replication.steps import receive

    run = receive(config, "cluster", place=task)
    section, files, layers = graph_task(run, task)
    counts, points = cluster_counts(section.given()["methods"]), section.cluster_points
    paths = [files.graphs("train", layer) for layer in range(layers)]
    inputs(*paths, *(files.projections(seed) for seed in run.student_seeds))
    for path in paths:
        with open_graphs(path) as layer:
            for seed in run.student_seeds:
                projection = load_projection(files.projections(seed) / path.name)
                fitted = fit_layer(layer, projection, counts, points, seed)
                save(files.centroids(seed) / path.name, fitted, points=points, seed=seed)


def sweep(task: GraphPlace, config: ConfigFile, method: Methods = None) -> None:
    """Measure recall and sparsity of every setting of methods with every window, on every layer and from every seed."""
    from replication.files.storage import write_table
    from replication.graphs import centroids, projections
    from replication.graphs.grids import expand
    from replication.graphs.shards import open_graphs
    from replication.graphs.sweep import sweep_layer
    from replication.results.settings import as_columns
    from replication.run.places import graph_task
    from replication.steps import receive

    run = receive(config, "sweep", place=task, method=method)
    section, files, layers = graph_task(run, task)
    seeds, grids = run.student_seeds, section.given()["methods"]
    paths = [files.graphs("valid", layer) for layer in range(layers)]
    # Only methods with clusters have centroids, so that others need not wait for these.
    kinds = (
        (files.projections, files.centroids)
        if any("clusters" in grid for grid in grids.values())
        else (files.projections,)
    )
    inputs(*paths, *(folder(seed) for seed in seeds for folder in kinds))
    for name in method or grids:
        members = expand({name: grids[name]})
        if any(member.fits for member in members):
            inputs(*(files.graphs("train", layer) for layer in range(layers)))

        def measure(layer, file, members=members):
            students = {}
            for seed in seeds:
                projection = projections.load(files.projections(seed) / file)
                learned = centroids.load(files.centroids(seed) / file) if files.centroids in kinds else {}
                if any(member.fits for member in members):
                    with open_graphs(files.graphs("train", layer.header["layer"])) as train:
                        batches = train.batches(centroids.BATCH_SIZE)
                        learned |= centroids.fit_members(members, batches, projection, seed)
                students[seed] = projection, learned
            return sweep_layer(layer, students, members, list(section.windows), section.global_tokens)

        table = _by_layer(measure, ((path, path.name) for path in paths))
        table.insert(0, "seed", table.pop("seed"))
        table["global_tokens"] = section.global_tokens
        write_table(files.sweep(name), as_columns(table))


def coreference(config: ConfigFile) -> None:
    """Measure how much attention each head of the masked language model gives to coreferent tokens."""
    from replication.corpora.tokens import KIND, read_tokens
    from replication.files.storage import read_header, write_table
    from replication.graphs.analysis import coreference_by_head
    from replication.run.places import masked_lm
    from replication.steps import receive

    section, files = masked_lm(receive(config, "coreference"))
    tokens, paths = files.tokens("valid"), [files.graphs("valid", layer) for layer in range(section.layers)]
    inputs(tokens, *paths)
    chains, source = read_tokens(tokens)["chains"], read_header(tokens, kind=KIND)["chain_source"]
    table = _by_layer(lambda layer: coreference_by_head(layer, chains), ((path,) for path in paths))
    write_table(files.coreference, table.assign(chains=source))


def tags(config: ConfigFile) -> None:
    """Count how the parts of speech spread over the k-means clusters of each head."""
    from replication.corpora.tokens import KIND, read_tokens
    from replication.files.storage import read_header, write_table
    from replication.graphs import centroids, projections
    from replication.graphs.analysis import tags_over_clusters
    from replication.run.places import masked_lm
    from replication.steps import receive

    run = receive(config, "tags")
    section, files = masked_lm(run)
    seed, tokens = run.student_seeds[0], files.tokens("valid")
    paths = [files.graphs("valid", layer) for layer in range(section.layers)]
    inputs(tokens, *paths, files.projections(seed), files.centroids(seed))
    header, tagged = read_header(tokens, kind=KIND), read_tokens(tokens)["tags"]

    def measure(layer, name):
        projection = projections.load(files.projections(seed) / name)
        kmeans = centroids.load(files.centroids(seed) / name)[f"kmeans-{section.tag_clusters}"]
        return tags_over_clusters(layer, projection, kmeans, tagged, header["tag_names"])

    table = _by_layer(measure, ((path, path.name) for path in paths))
    write_table(files.tags, table.assign(tags=header["tag_source"]))


def passage(config: ConfigFile) -> None:
    """Write the beginning of the held-out text with the graphs of all heads, and what predicted graphs follow from."""
    from replication.corpora.tokens import load_tokenizer, read_tokens
    from replication.files.storage import write_json
    from replication.graphs import centroids, projections
    from replication.masked_lm.model import load_entmax_model
    from replication.masked_lm.passage import cut, passage_data
    from replication.run.layout import layer_file
    from replication.run.places import masked_lm
    from replication.steps import receive

    run = receive(config, "passage")
    section, files = masked_lm(run)
    folders = [kind(run.student_seeds[0]) for kind in (files.projections, files.centroids)]
    inputs(files.model.parent, files.tokenizer, files.tokens("valid"), *folders)
    network, control = load_entmax_model(files.model.parent)
    names = [layer_file(layer) for layer in range(section.layers)]
    students = [(projections.load(folders[0] / name), centroids.load(folders[1] / name)) for name in names]
    ids = cut(read_tokens(files.tokens("valid"))["input_ids"][0])
    write_json(files.passage, passage_data(network, control, load_tokenizer(files.tokenizer.parent), ids, students))


def factorised(config: ConfigFile) -> None:
    """Measure keys per query of the factorised patterns, and the layers after which each position reaches all earlier ones."""
    from replication.files.storage import write_table
    from replication.graphs.reach import factorised_reach
    from replication.run.layout import reach_table
    from replication.steps import receive

    write_table(reach_table(receive(config, "factorised").profile), factorised_reach())


def attention_parts(place: SymbolsPlace, config: ConfigFile) -> None:
    """Measure how much of every dense head's attention lies on its row and on its column, on the test text."""
    import pandas as pd

    from replication.char_lm.data import read_streams
    from replication.char_lm.evaluation import attention_in_parts
    from replication.char_lm.models import load_model
    from replication.files.contents import read_json
    from replication.files.storage import write_table
    from replication.run.layout import CHARACTER_FILES
    from replication.run.places import symbol_place
    from replication.steps import receive

    section, files = symbol_place(receive(config, "attention_parts", place=place), place)
    folders = [files.model("dense", seed) for seed in section.seeds]
    models = [folder / file for folder in folders for file in CHARACTER_FILES]
    inputs(files.text("train"), files.text("test"), *models)
    tables = []
    for folder in folders:
        run = read_json(folder / "training.json")
        length = run["recipe"]["length"]
        _, streams = read_streams(files.text("test").parent, {"test": run["rows"]["test"]}, length)
        model, _ = load_model(folder / "model.safetensors")
        table = attention_in_parts(model, streams["test"], length, section.models.dense.width)
        table.insert(0, "seed", run["seed"])
        tables.append(table)
    write_table(files.parts, pd.concat(tables, ignore_index=True))


def _by_layer(measure: Callable, files: Iterable[tuple[Path | str, ...]]):
    """Return what is measured on each layer's graphs as one table whose first column is the layer."""
    import pandas as pd

    from replication.graphs.shards import open_graphs

    tables = []
    for path, *others in files:
        with open_graphs(path) as layer:
            table = measure(layer, *others)
            table.insert(0, "layer", layer.header["layer"])
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
