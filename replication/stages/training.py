"""Train models; an interrupted training resumes."""

from replication.files.verification import inputs
from replication.stages.options import (
    Cells,
    ConfigFile,
    FormsPlace,
    ModelName,
    ModelSeed,
    PairPlace,
    Processes,
    SymbolsPlace,
)


def train_masked_lm(config: ConfigFile, processes: Processes = 1) -> None:
    """Train a masked language model with entmax, from random weights or from a pretrained encoder."""
    from replication.training import is_first, see_one_gpu, start

    start(processes)
    see_one_gpu()
    import pandas as pd

    from replication.corpora.tokens import load_tokenizer, read_tokens
    from replication.files.notes import note
    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.masked_lm.model import build_model, load_pretrained
    from replication.masked_lm.training import train
    from replication.run.places import masked_lm
    from replication.steps import receive
    from replication.training import remove_checkpoints, runtime
    from sparselib.normalizers import Entmax

    run = receive(config, "train_masked_lm")
    section, files = masked_lm(run)
    inputs(files.tokens("train"), files.tokenizer, files.tokenizer.parent)
    model, training = section.model.given(), section.training.given()
    input_ids = read_tokens(files.tokens("train"))["input_ids"]
    tokenizer = load_tokenizer(files.tokenizer.parent)
    adapter_rank = model.get("adapter_rank", 0)
    sizes = {key: value for key, value in model.items() if key not in ("normalizer", "alpha")}
    if "pretrained" in model:
        changes = {key: value for key, value in sizes.items() if key not in ("pretrained", "adapter_rank")}
        network = load_pretrained(model["pretrained"], run.seed, **changes)
        if network.config.random_head:
            note(
                f"{model['pretrained']} has no weights of a vocabulary head, which starts from random weights; a model with "
                "its head has a lower perplexity"
            )
    else:
        network = build_model(tokenizer, input_ids.shape[1], run.seed, **sizes)
    output = files.model.parent
    adapters = {"adapter_rank": adapter_rank, "base": model["pretrained"]} if adapter_rank else {}
    log = train(
        network,
        tokenizer,
        input_ids,
        output,
        seed=run.seed,
        normalizer=Entmax(section.model.attention_alpha),
        **adapters,
        **training,
    )
    if not is_first():
        return
    steps = pd.DataFrame([entry for entry in log if "loss" in entry])
    steps = steps[["step", "epoch", "learning_rate", "loss"]]
    if "held_out" in training:
        held_out = pd.DataFrame([{"step": e["step"], "held_out_loss": e["eval_loss"]} for e in log if "eval_loss" in e])
        steps = steps.merge(held_out, on="step", how="outer")
    # A held-out loss is measured at checkpoints only.
    write_table(output / "training.csv", steps)
    summary = {
        "model": model,
        "architecture": {
            key: value for key, value in network.config.to_dict().items() if isinstance(value, int | float)
        },
        "training": training,
        "seed": run.seed,
        "sequences": len(input_ids),
        "length": input_ids.shape[1],
        "train_runtime": runtime(log),
    }
    write_json(output / "training.json", summary | provenance())
    remove_checkpoints(output)


def train_translation(place: PairPlace, config: ConfigFile, processes: Processes = 1) -> None:
    """Train a translator, from random weights or from the model of its first training."""
    import time

    from replication.training import is_first, remove_checkpoints, start

    start(processes)
    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.run.text_places import ParallelPlace
    from replication.steps import receive
    from replication.translation.lengths import left_out
    from replication.translation.training import FIXED, train

    run = receive(config, "train_translation", place=place)
    text = ParallelPlace(run, place)
    section, files = text.section, text.files
    architecture, initial = section.architecture.given(), None
    training = (section.pretraining if text.is_pretraining else section).training.given()
    if not text.is_pretraining and section.pretraining:
        initial = files.pretraining.model
    inputs(files.data, *([initial] if initial else []))
    output = files.model.parent
    began = time.perf_counter()
    log = train(files.data, *text.pair, architecture, training, run.seed, output, initial)
    if not is_first():
        return
    write_table(output / "training.csv", log)
    summary = {
        "architecture": architecture,
        "training": FIXED | training,
        "seed": run.seed,
        "initial": str(initial or ""),
        "left_out": left_out(files.data, text.pair, training),
    }
    write_json(output / "training.json", summary | {"train_runtime": time.perf_counter() - began} | provenance())
    remove_checkpoints(output)


def train_characters(place: SymbolsPlace, model: ModelName, seed: ModelSeed, config: ConfigFile) -> None:
    """Train a model of characters or pixels."""
    import time

    from replication.char_lm.data import read_streams
    from replication.char_lm.training import Recipe, checkpoint_of, train
    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.run.layout import ALL_SPLITS
    from replication.run.places import symbol_place
    from replication.run.trained import members
    from replication.steps import receive

    section, files = symbol_place(receive(config, "train_characters", place=place, model=model, seed=seed), place)
    # What a model says of itself takes precedence over what all models have in common.
    settings = section.sizes.given() | members(section.models)[model].given()
    settings = {"top_k": None} | settings
    recipe, rows = section.recipe.given(), section.rows.given()
    inputs(*(files.text(split) for split in ALL_SPLITS))
    output = files.model(model, seed)
    plan = Recipe(**recipe)
    alphabet, streams = read_streams(files.text("train").parent, rows, plan.length)
    goes_on = checkpoint_of(output).exists()
    start = time.perf_counter()
    _, log = train(settings, alphabet, streams["train"], streams["valid"], plan, seed, output)
    # The time of a run that was interrupted before is unknown.
    seconds = None if goes_on else time.perf_counter() - start
    write_table(output / "log.csv", log)
    summary = {"settings": settings, "recipe": recipe, "rows": rows, "seed": seed, "train_runtime": seconds}
    write_json(output / "training.json", summary | provenance())


def train_forms(place: FormsPlace, config: ConfigFile, cell: Cells = None) -> None:
    """Train translators that attend by one form each."""
    import time

    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.run.places import cells_of
    from replication.run.text_places import ParallelPlace
    from replication.steps import receive
    from replication.training import remove_checkpoints
    from replication.translation.forms import form_options
    from replication.translation.lengths import left_out
    from replication.translation.training import FIXED, train

    text = ParallelPlace(receive(config, "train_forms", place=place, cell=cell), place)
    section, files = text.section, text.files
    inputs(files.data)
    architecture, training = section.architecture.given(), section.training.given()
    # Before the first training, so that a mistake in the last cell is reported at once.
    chosen = [(it, training | form_options(it.form, it.budget)) for it in cells_of(section, cell)]
    too_long = left_out(files.data, text.pair, training)
    for it, settings in chosen:
        folder = files.cell(it.name)
        start = time.perf_counter()
        log = train(files.data, *text.pair, architecture, settings, it.seed, folder)
        write_table(folder / "training.csv", log)
        summary = {"architecture": architecture, "training": FIXED | settings, "seed": it.seed, "left_out": too_long}
        write_json(folder / "training.json", summary | {"train_runtime": time.perf_counter() - start} | provenance())
        remove_checkpoints(folder)


def train_normalizers(config: ConfigFile) -> None:
    """Train the same translator, from the same seed, with softmax, top-k, sparsemax and entmax."""
    import time

    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.run.text_places import ParallelPlace
    from replication.steps import receive
    from replication.training import remove_checkpoints
    from replication.translation.contenders import CONTENDERS
    from replication.translation.lengths import left_out
    from replication.translation.training import FIXED, train

    run = receive(config, "train_normalizers")
    text = ParallelPlace(run, "normalizer_speed")
    section, files = text.section, text.files
    inputs(files.data)
    architecture = section.architecture.given()
    too_long = left_out(files.data, text.pair, section.training.given())
    for contender in CONTENDERS:
        folder = contender.folder(files.models)
        settings = section.training.given() | contender.options(section.top_k)
        start = time.perf_counter()
        log = train(files.data, *text.pair, architecture, settings, run.seed, folder)
        write_table(folder / "training.csv", log)
        summary = {"architecture": architecture, "training": FIXED | settings, "seed": run.seed, "left_out": too_long}
        write_json(folder / "training.json", summary | {"train_runtime": time.perf_counter() - start} | provenance())
        remove_checkpoints(folder)


def train_captioner(model: ModelName, seed: ModelSeed, config: ConfigFile) -> None:
    """Train a captioner from random weights."""
    import pandas as pd

    from replication.captioning.batches import Captions, Vocabulary
    from replication.captioning.model import build_model, settings_of
    from replication.captioning.pictures import load_pictures, regions_of
    from replication.captioning.training import train
    from replication.files.provenance import provenance
    from replication.files.storage import write_json, write_table
    from replication.run.places import captioning, region_features
    from replication.run.trained import members
    from replication.steps import receive
    from replication.training import remove_checkpoints, runtime, see_one_gpu

    see_one_gpu()
    run = receive(config, "train_captioner", model=model, seed=seed)
    section, files = captioning(run)
    attention = members(section.models)[model].given()
    architecture, limits, training = section.architecture.given(), section.limits.given(), section.training.given()
    regions = region_features(run)
    inputs(files.pictures("train"), regions)
    output = files.model(model, seed)
    pictures, read = load_pictures(files.pictures("train")), regions_of(regions)
    captions = (words for picture in pictures for words in picture.captions)
    vocabulary = Vocabulary.of(captions, limits["word_count"])
    sizes = {"region_count": limits["regions"], "region_width": read(pictures[0].image).shape[1]}
    sizes |= {"longest": limits["caption_words"], "top_k": settings_of(attention)}
    network = build_model(len(vocabulary), seed=seed, **sizes, **architecture)
    batches = Captions(pictures, vocabulary, limits["caption_words"])
    log = train(network, batches, read, output, seed=seed, **training)
    steps = pd.DataFrame([entry for entry in log if "loss" in entry])
    write_table(output / "training.csv", steps[["step", "epoch", "learning_rate", "loss"]])
    write_json(output / "vocabulary.json", list(vocabulary.words))
    summary = {
        "model": {"top_k": settings_of(attention)},
        "architecture": architecture,
        "limits": limits,
        "training": training,
        "seed": seed,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "train_runtime": runtime(log),
    }
    write_json(output / "training.json", summary | provenance())
    remove_checkpoints(output)
