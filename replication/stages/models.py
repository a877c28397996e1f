"""Evaluate models as trained."""

import math

from replication.files.verification import inputs
from replication.stages.options import Cells, ConfigFile, FormsPlace, SymbolsPlace, TranslatorPlace


def perplexity(config: ConfigFile) -> None:
    """Measure the perplexity of the model, of unigrams and of bigrams, on the same masked tokens of each corpus."""
    import pandas as pd

    from replication.corpora.tokens import load_tokenizer, read_tokens
    from replication.files.encoders import ENCODERS
    from replication.files.storage import write_table
    from replication.masked_lm import evaluation
    from replication.masked_lm.model import load_entmax_model
    from replication.run.places import masked_lm
    from replication.steps import receive

    section, files = masked_lm(receive(config, "perplexity"))
    corpora = {"held-out": files.tokens("valid")} | {
        name: files.unseen(name).tokens("valid") for name in section.unseen
    }
    inputs(files.model.parent, files.tokenizer, files.tokenizer.parent, files.tokens("train"), *corpora.values())
    network, _ = load_entmax_model(files.model.parent)
    tokenizer = load_tokenizer(files.tokenizer.parent)
    masking = section.evaluation.given() | {"sequences": None}
    train_ids = read_tokens(files.tokens("train"))["input_ids"]
    rows = []
    for corpus, path in corpora.items():
        text = evaluation.read_masked_text(path, tokenizer, masking)
        nats = evaluation.baseline_cross_entropies(train_ids, text, len(tokenizer))
        name = f"entmax {ENCODERS[network.config.model_type]}"
        nats[name] = evaluation.cross_entropy(network, text, masking["batch_size"])
        places = int((text.labels >= 0).sum())
        rows += [
            {"corpus": corpus, "model": model, "nats": value, "masked_tokens": places} for model, value in nats.items()
        ]
    table = pd.DataFrame(rows)
    table["perplexity"] = table["nats"].map(math.exp)
    write_table(files.perplexity, table)


def bleu(task: TranslatorPlace, config: ConfigFile) -> None:
    """Measure the BLEU of a translator as trained, on the whole test split."""
    import pandas as pd

    from replication.files.storage import replacing, write_table
    from replication.run.places import translator
    from replication.steps import receive
    from replication.translation.evaluation import ceiling, score, to_text
    from replication.translation.model import BATCH_TOKENS, load_translator

    section, files, (_, target) = translator(receive(config, "bleu", place=task), task)
    references, beam = files.corpus("test", target), section.decoding.beam
    inputs(files.model, files.data, references)
    loaded = load_translator(files.model, files.data)
    expected = references.read_text(encoding="utf-8").splitlines()
    pieces = loaded.translate("test", len(expected), beam, BATCH_TOKENS)
    text = to_text(loaded, pieces)
    value, signature = score(text, expected, target)
    with replacing(files.hypotheses) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    row = {"split": "test", "sentences": len(text), "beam": beam, "bleu": value, "signature": signature}
    row["ceiling"] = ceiling(loaded, "test", expected)
    write_table(files.bleu, pd.DataFrame([row]))


def measure_characters(place: SymbolsPlace, config: ConfigFile) -> None:
    """Evaluate all models of a corpus of characters or pixels on its test text."""
    import pandas as pd

    from replication.char_lm.data import read_streams
    from replication.char_lm.evaluation import evaluate
    from replication.char_lm.models import load_model
    from replication.files.contents import read_json
    from replication.files.storage import write_table
    from replication.run.layout import ALL_SPLITS, CHARACTER_FILES
    from replication.run.places import symbol_place
    from replication.run.trained import members
    from replication.steps import receive

    section, files = symbol_place(receive(config, "measure_characters", place=place), place)
    folders = [files.model(model, seed) for model in members(section.models) for seed in section.seeds]
    # Tables of an earlier measurement can be out of date.
    models = [folder / file for folder in folders for file in CHARACTER_FILES]
    inputs(*(files.text(split) for split in ALL_SPLITS), *models)
    text = files.text("test").parent
    for folder in folders:
        run = read_json(folder / "training.json")
        model, alphabet_trained_with = load_model(folder / "model.safetensors")
        length = run["recipe"]["length"]
        alphabet, streams = read_streams(text, {"test": run["rows"]["test"]}, length)
        if alphabet != alphabet_trained_with:
            raise ValueError(f"{text}: its characters differ from those that {folder} was trained with")
        measured = evaluate(model, streams["test"], length)
        row = {
            "architecture": run["settings"]["architecture"],
            "top_k": run["settings"]["top_k"],
            "memory_length": model.memory_length,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "characters": streams["test"].characters(),
            "bits_per_character": measured.bits_per_character,
            "attended_positions": measured.attended_positions,
            **model.measurements(),
            "training_seconds": run["train_runtime"],
            "device": run["hardware"],
        }
        write_table(folder / "segments.parquet", measured.segments)
        write_table(folder / "measured.csv", pd.DataFrame([row]))


def character_baselines(place: SymbolsPlace, config: ConfigFile) -> None:
    """Measure bits per character of unigrams and bigrams, learned on the training text, on the test text."""
    import pandas as pd

    from replication.char_lm.data import Alphabet
    from replication.char_lm.evaluation import baselines
    from replication.files.storage import write_table
    from replication.run.layout import Symbols, results_folder
    from replication.steps import receive

    files = Symbols(results_folder(receive(config, "character_baselines", place=place).profile) / place)
    inputs(files.text("train"), files.text("test"))
    train, test = (files.text(split).read_bytes() for split in ("train", "test"))
    alphabet = Alphabet.of(train)
    bits = baselines(alphabet.encode(train), alphabet.encode(test), len(alphabet))
    rows = [{"model": name, "bits_per_character": value, "characters": len(test) - 1} for name, value in bits.items()]
    write_table(files.baselines, pd.DataFrame(rows))


def measure_forms(place: FormsPlace, config: ConfigFile, cell: Cells = None) -> None:
    """Measure BLEU, attended positions and cross-attention of translators as trained, and Top-k attending fully too."""
    import pandas as pd

    from replication.corpora.alignment import from_pharaoh
    from replication.files.storage import write_table, write_tensors
    from replication.run.places import cells_of
    from replication.run.text_places import ParallelPlace
    from replication.run.trained import word_alignment_is_known
    from replication.steps import receive
    from replication.translation.cross_attention import describe
    from replication.translation.forms import FULL, TOP_K, attending_fully, measure
    from replication.translation.model import BATCH_TOKENS, load_translator

    text = ParallelPlace(receive(config, "measure_forms", place=place, cell=cell), place)
    section, files, chosen = text.section, text.files, cells_of(text.section, cell)
    references, alignment = files.corpus("test", text.pair[1]), files.alignment("test")
    aligned = word_alignment_is_known(section, "-".join(text.pair))
    models = [files.cell(it.name) / "model.safetensors" for it in chosen]
    inputs(files.data, references, *models, *([alignment] if aligned else []))
    expected = references.read_text(encoding="utf-8").splitlines()[: section.given().get("tested")]
    links = alignment.read_text(encoding="utf-8").splitlines()[: len(expected)] if aligned else None
    pairs = [from_pharaoh(line) for line in links] if aligned else None
    decoding = ("test", expected, section.beam, BATCH_TOKENS)
    for it in chosen:
        folder, columns = files.cell(it.name), it.columns
        translator = load_translator(folder / "model.safetensors", files.data)
        tested = {it.form: measure(translator, *decoding)}
        # "Sparsified only in training" is a claim about Top-k.
        if it.form == TOP_K:
            with attending_fully(translator):
                tested[FULL] = measure(translator, *decoding)
        rows = [{"tested_with": form} | row for form, (row, _) in tested.items()]
        counts = [counts.assign(tested_with=form, **columns) for form, (_, counts) in tested.items()]
        concentration, (number, shown) = describe(translator, "test", len(expected), pairs, BATCH_TOKENS)
        header = {"number": number, "source_words": shown.source, "target_words": shown.target} | columns
        write_tensors(folder / "map.safetensors", {"weights": shown.weights}, kind="cross-attention map", **header)
        write_table(folder / "cross_attention.csv", concentration.assign(**columns))
        write_table(folder / "sentences.parquet", pd.concat(counts, ignore_index=True))
        write_table(folder / "measured.csv", pd.DataFrame(rows).assign(**columns))


def measure_captioners(config: ConfigFile) -> None:
    """Describe the test images with every captioner, and score the captions."""
    import json

    import pandas as pd

    from replication.captioning.batches import Vocabulary
    from replication.captioning.evaluation import attended_regions, describe, measured
    from replication.captioning.model import load_model
    from replication.captioning.pictures import load_pictures, regions_of
    from replication.captioning.scores import corpus
    from replication.files.contents import read_json
    from replication.files.storage import write_table
    from replication.run.layout import CAPTIONER_FILES
    from replication.run.places import captioning, region_features
    from replication.run.trained import members
    from replication.steps import receive

    run_config = receive(config, "measure_captioners")
    section, files = captioning(run_config)
    regions = region_features(run_config)
    folders = [files.model(model, seed) for model in members(section.models) for seed in section.seeds]
    # Tables of an earlier measurement can be out of date.
    models = [folder / file for folder in folders for file in CAPTIONER_FILES]
    inputs(files.pictures("test"), regions, *models)
    test, read = load_pictures(files.pictures("test")), regions_of(regions)
    for folder in folders:
        run = read_json(folder / "training.json")
        vocabulary = Vocabulary(tuple(json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))))
        model, longest = load_model(folder), run["limits"]["caption_words"]
        decoding = section.decoding.given() | {"longest": longest}
        captions = describe(model, vocabulary, read, [picture.image for picture in test], decoding)
        table = measured(test, captions)
        maps = [attended_regions(model, vocabulary, read, picture, longest) for picture in test[: section.shown]]
        row = {
            "top_k": run["model"]["top_k"],
            "parameters": run["parameters"],
            "images": len(test),
            **corpus(table),
            "cider_of_other": table["cider_of_other"].mean(),
            "training_seconds": run["train_runtime"],
            "device": run["hardware"],
        }
        write_table(folder / "captions.parquet", table)
        write_table(folder / "attention.parquet", pd.concat(maps, ignore_index=True))
        write_table(folder / "measured.csv", pd.DataFrame([row]))
