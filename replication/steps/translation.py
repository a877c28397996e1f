"""Machine translation: parallel text, training with fairseq, decoder graphs, and decoding under predicted graphs."""

from collections.abc import Iterator

from replication.run.layout import SPLITS, TRANSLATOR_FILES
from replication.run.places import translators
from replication.run.text_places import ParallelPlace, parallel_place_names
from replication.steps.predictors import fitted_to
from replication.steps.step import Declaring, Step, text_of

BASE = "translation"


def parallel_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps that read parallel text and cut it into subwords, of every such text."""
    for place in parallel_place_names(at.run):
        text = ParallelPlace(at.run, place)
        source, target = text.pair
        forms, what = place.startswith("forms/"), f"sentences in {source} and {target}"
        # Documents come in folders, because some corpora say which words are translations of each other, and others do not.
        corpus = {"folders": [text.files.folder / "corpus"]} if forms else {"makes": text.corpus_files}
        # Which pair there is, and whether another text's subwords are taken.
        parts = {f"{text.section_key}/corpus": "-".join(text.pair), f"{text.section_key}/pretraining": bool(text.like)}
        # Long jobs wait for every pair that is translated.
        priority = int(place.startswith(f"{BASE}/"))
        yield Step(
            command="parallel_corpus",
            message=f"Prepare {what}, {place}",
            place=place,
            text=text_of(text.corpus, text.splits, text.pair),
            sees=at.see(*text.corpus_key)
            | at.see(text.section_key, "block_words", *(["words"] if text.aligned else [])),
            priority=priority,
            **corpus,
        )
        yield Step(
            command="binarize",
            message=f"Tokenize {what}, {place}",
            place=place,
            reads=[*(corpus.get("makes") or corpus["folders"]), *([text.like] if text.like else [])],
            folders=[text.files.data],
            sees=at.see(text.section_key, "words", "merges") | parts,
            priority=priority,
        )


def translation_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps of every translator whose decoder's graphs are predicted."""
    section, seeds = at.run.translation, at.run.student_seeds
    seen = at.see(BASE, "architecture") | at.see("", "seed")
    for place in translators(at.run):
        text = ParallelPlace(at.run, place)
        files, (source, target) = text.files, text.pair
        name = f"{source} to {target}"
        if section.pretraining:
            yield Step(
                command="train_translation",
                message=f"Pretrain the translator from {name}",
                place=f"{place}/pretraining",
                reads=[files.pretraining.data],
                makes=[files.pretraining.model_file(file) for file in TRANSLATOR_FILES],
                sees=seen | at.see(BASE, "pretraining"),
                priority=1,
            )
        if f"{place}/model" not in at.imported:
            yield Step(
                command="train_translation",
                message=f"Train the translator from {name}",
                place=place,
                reads=[files.data, *([files.pretraining.model] if section.pretraining else [])],
                makes=[files.model_file(file) for file in TRANSLATOR_FILES],
                sees=seen | at.see(BASE, "training", "pretraining"),
                priority=1,
            )
        model, references = [files.model, files.data], files.corpus("test", target)
        layers = range(section.architecture.decoder_layers)
        chosen = [files.sweep(method) for method in section.methods] if section.replaced.budgets else []
        yield Step(
            command="extract_decoder",
            message=f"Extract the decoder's attention graphs, {name}",
            place=place,
            reads=model,
            makes=[
                *(files.graphs(split, layer) for split in SPLITS for layer in layers),
                *(files.graph_sentences(split) for split in SPLITS),
            ],
            sees=at.see(BASE, "graphs") | at.see("", "seed"),
            priority=1,
        )
        replacing = {method.predictor for method in (section.replaced.methods or section.methods).values()}
        yield Step(
            command="decode",
            message=f"Translate from {name} under predicted graphs",
            place=place,
            reads=[
                *model,
                references,
                *(kind(seed) for kind in (files.projections, files.centroids) for seed in seeds),
                *chosen,
                *fitted_to((files.graphs("train", layer) for layer in layers), replacing),
            ],
            makes=[path(seed) for path in (files.replaced, files.sentences) for seed in seeds],
            sees=at.see(BASE, "architecture", "replaced", "global_tokens", "decoding", *(["methods"] if chosen else []))
            | at.see("", "student_seeds"),
            predictors=replacing,
            priority=1,
        )
        yield Step(
            command="bleu",
            message=f"Measure the BLEU of the translator from {name}",
            place=place,
            reads=[*model, references],
            makes=[files.bleu, files.hypotheses],
            sees=at.see(f"{BASE}/decoding", "beam"),
        )
