"""Read and write texts, and cut them into subwords."""

from replication.files.verification import inputs
from replication.stages.options import ConfigFile, PairPlace, SymbolsPlace, TextPlace


def corpus(place: TextPlace, config: ConfigFile) -> None:
    """Write or read a corpus: documents, sentences, words, and their annotation where there is any."""
    from replication.corpora.documents import write_documents
    from replication.corpora.held_out import check_held_out, remembering, sentences_of
    from replication.corpora.sources import name_of, read_splits
    from replication.run.text_places import TokenPlace
    from replication.steps import receive

    text = TokenPlace(receive(config, "corpus", place=place), place)
    source, training = text.corpus.given(), set()
    # The training split is the first, if there is one.
    for split, documents in read_splits(source, list(text.splits)).items():
        tag_source = "gold"
        if split == "train":
            documents = remembering(documents, training)
        else:
            documents = list(documents)
            check_held_out(split, sentences_of(documents), training, name_of(source))
        if split in text.tagged:
            from replication.corpora.tagging import with_tags

            documents, tag_source = with_tags(documents, source.get("language", "en"))
        write_documents(text.files.corpus(split), documents, tag_source)


def tokenize(place: TextPlace, config: ConfigFile) -> None:
    """Cut a corpus into sequences of subword ids, with tags and coreference chains beside them."""
    from replication.corpora import tokens
    from replication.corpora.documents import read_documents, read_tag_source
    from replication.run.text_places import TokenPlace
    from replication.steps import receive

    text = TokenPlace(receive(config, "tokenize", place=place), place)
    made_here = text.makes_tokenizer
    corpora = {split: text.files.corpus(split) for split in text.splits}
    inputs(*corpora.values(), *([] if made_here else [text.tokenizer, text.tokenizer.parent]))
    if text.vocab_size:
        fitted = tokens.train_tokenizer(read_documents(corpora["train"]), text.vocab_size)
    else:
        fitted = tokens.load_tokenizer(text.pretrained or text.tokenizer.parent)
    for split, path in corpora.items():
        try:
            blocks, header = tokens.encode_blocks(read_documents(path), fitted, text.length)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        header["tag_source"] = read_tag_source(path)
        tokens.write_blocks(text.files.tokens(split), blocks, header)
    if made_here:
        tokens.save_tokenizer(fitted, text.tokenizer.parent)


def parallel_corpus(place: PairPlace, config: ConfigFile) -> None:
    """Write or read aligned sentences, or blocks of them, one plain text file per split and language."""
    from replication.corpora.held_out import check_held_out, hashed
    from replication.corpora.parallel import write_parallel
    from replication.corpora.sources import name_of, read_alignments, read_document_blocks, read_parallel_splits
    from replication.corpora.spacing import fit_tokenizer
    from replication.files.storage import replacing
    from replication.run.text_places import ParallelPlace
    from replication.steps import receive

    text = ParallelPlace(receive(config, "parallel_corpus", place=place), place)
    source, splits, languages = text.corpus.given(), list(text.splits), list(text.pair)
    if text.block_words is None:
        lines_of = read_parallel_splits(source, splits, languages)
    else:
        lines_of = read_document_blocks(source, splits, languages, text.block_words)
    training = hashed(zip(*lines_of["train"].values(), strict=True))
    for split in lines_of.keys() - {"train"}:
        check_held_out(split, zip(*lines_of[split].values(), strict=True), training, name_of(source))
    for split, lines in lines_of.items():
        write_parallel(text.files.folder / "corpus", split, lines)
    if text.aligned:
        # A folder can have keys of some splits only.
        train = lines_of["train"]
        tokenizers = {lang: fit_tokenizer(text.section.words, lang, train[lang])[0] for lang in languages}
        alignments = read_alignments(source, list(text.aligned), languages, tokenizers)
        for split in alignments:
            # Not written as text, because a line without links is empty.
            with replacing(text.files.alignment(split)) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in alignments[split]), encoding="utf-8")


def binarize(place: PairPlace, config: ConfigFile) -> None:
    """Tokenise aligned sentences, cut them into joint subwords, and write fairseq's binary format."""
    from replication.run.text_places import ParallelPlace
    from replication.steps import receive
    from replication.translation.data import binarize

    text = ParallelPlace(receive(config, "binarize", place=place), place)
    inputs(*(text.files.corpus(split, language) for split in text.splits for language in text.pair))
    inputs(*([text.like] if text.like else []))
    folder, section = text.files.folder / "corpus", text.section
    binarize(folder, *text.pair, list(text.splits), section.words, section.merges, text.files.data, text.like)


def characters(place: SymbolsPlace, config: ConfigFile) -> None:
    """Write or read a text of characters or pixels, and split it."""
    from replication.char_lm.corpus import read_corpus
    from replication.files.storage import replacing, write_json
    from replication.run.places import symbol_place
    from replication.steps import receive

    section, files = symbol_place(receive(config, "characters", place=place), place)
    source = section.corpora[place.rpartition("/")[2]].given()
    splits = read_corpus(source)
    for name, split in splits.items():
        with replacing(files.text(name)) as temporary:
            temporary.write_bytes(split.text)
    origins = {name: {"characters": len(split.text), "origin": split.origin} for name, split in splits.items()}
    write_json(files.summary, {"source": source, "splits": origins})


def pictures(config: ConfigFile) -> None:
    """Draw scenes, or read Karpathy's splits of COCO and check that every image has its features."""
    from replication.captioning.pictures import read_pictures, write_features, write_pictures
    from replication.files.storage import write_json
    from replication.run.places import captioning
    from replication.steps import receive

    section, files = captioning(receive(config, "pictures"))
    source = section.source.given()
    splits, features = read_pictures(source)
    for name, split in splits.items():
        write_pictures(files.pictures(name), split)
    if features:
        write_features(files.regions, features)
    counts = {
        name: {"images": len(split), "captions": sum(len(picture.captions) for picture in split)}
        for name, split in splits.items()
    }
    write_json(files.summary, {"source": source, "splits": counts})
