"""Masked language model: text, training, perplexity, attention graphs, and evaluation under predicted graphs."""

from collections.abc import Iterator

from replication.run.layout import SPLITS, MaskedLM, tokenizer_files
from replication.run.text_places import TokenPlace, token_place_names
from replication.run.trained import masked_lm_files
from replication.steps.predictors import fitted_to
from replication.steps.step import Declaring, Step, model_in, text_of

BASE = "masked_lm"


def masked_lm_steps(at: Declaring) -> Iterator[Step]:
    """Yield every step of the masked language model but those of its blocks."""
    section, files, seeds = at.run.masked_lm, MaskedLM(at.results / BASE), at.run.student_seeds
    layers, tokenizer = range(section.layers), tokenizer_files(files.tokenizer)
    tokens = [files.tokens(split) for split in SPLITS]
    graphs = [files.graphs("valid", layer) for layer in layers]
    students = [folder(seed) for folder in (files.projections, files.centroids) for seed in seeds]
    chosen = [files.sweep(method) for method in section.methods] if section.replaced.budgets else []
    names = masked_lm_files(section)
    if f"{BASE}/model" not in at.imported:
        yield Step(
            command="train_masked_lm",
            message="Train the masked language model",
            reads=[files.tokens("train"), *tokenizer],
            pretrained=model_in(getattr(section.model, "pretrained", None)),
            makes=[files.model_file(name) for name in names],
            sees=at.see(BASE, "model", "training") | at.see("", "seed"),
            priority=2,  # The longest chain of jobs waits for this one.
            cores="half",
        )
    unseen = [files.unseen(name).tokens("valid") for name in section.unseen]
    yield Step(
        command="perplexity",
        message="Measure the perplexity of the masked language model",
        reads=[files.model, *tokenizer, *tokens, *unseen],
        makes=[files.perplexity],
        sees=at.see(BASE, "evaluation") | {f"{BASE}/unseen": list(section.unseen)},
        cores="half",
    )
    yield Step(
        command="extract",
        message="Extract attention graphs of the masked language model",
        reads=[files.model, *tokens],
        makes=[files.graphs(split, layer) for split in SPLITS for layer in layers],
        sees=at.see(BASE, "graphs") | at.see("", "seed"),
        priority=1,
        cores="half",
    )
    replacing = {method.predictor for method in (section.replaced.methods or section.methods).values()}
    yield Step(
        command="replace",
        message="Evaluate the masked language model under predicted graphs",
        reads=[
            *(files.model, *tokenizer, files.tokens("valid"), *students, *chosen),
            *fitted_to((files.graphs("train", layer) for layer in layers), replacing),
        ],
        makes=[path(seed) for path in (files.replaced, files.losses) for seed in seeds],
        sees=at.see(BASE, "layers", "replaced", "global_tokens", "evaluation", *(["methods"] if chosen else []))
        | at.see("", "student_seeds"),
        predictors=replacing,
        priority=1,
    )
    yield Step(
        command="coreference",
        message="Find heads that attend to coreferent tokens",
        reads=[*graphs, files.tokens("valid")],
        makes=[files.coreference],
        sees=at.see(BASE, "layers"),
    )
    yield Step(
        command="tags",
        message="Count parts of speech in clusters",
        reads=[*graphs, files.tokens("valid"), files.projections(seeds[0]), files.centroids(seeds[0])],
        makes=[files.tags],
        sees=at.see(BASE, "layers", "tag_clusters") | {"student_seeds": seeds[0]},
    )
    yield Step(
        command="passage",
        message="Write a passage with its attention graphs",
        reads=[files.model, *tokenizer, files.tokens("valid"), files.projections(seeds[0]), files.centroids(seeds[0])],
        makes=[files.passage],
        sees=at.see(BASE, "layers") | {"student_seeds": seeds[0]},
    )


def token_steps(at: Declaring) -> Iterator[Step]:
    """Yield the steps that read a text and cut it into sequences, of every such text."""
    for place in token_place_names(at.run):
        text = TokenPlace(at.run, place)
        *_, name = place.split("/")
        corpora = [text.files.corpus(split) for split in text.splits]
        # Long jobs wait for the text that models are trained on.
        priority = int("unseen" not in place)
        yield Step(
            command="corpus",
            message=f"Prepare the corpus {name}",
            place=place,
            text=text_of(text.corpus, text.splits),
            makes=corpora,
            sees=at.see(*text.corpus_key),
            priority=priority,
        )
        tokenizer = tokenizer_files(text.tokenizer)
        yield Step(
            command="tokenize",
            message=f"Tokenize the corpus {name}",
            place=place,
            pretrained=model_in(text.pretrained),
            reads=[*corpora, *([] if text.makes_tokenizer else tokenizer)],
            makes=[*(text.files.tokens(split) for split in text.splits), *(tokenizer if text.makes_tokenizer else [])],
            sees=at.see(text.section_key, "length", *(["model"] if place == "retrofit" else []))
            | (at.see(text.section_key, "tokenizer") if place == BASE else {}),
            priority=priority,
        )
