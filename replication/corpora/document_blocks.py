"""Consecutive sentences of a document joined into blocks, for translation beyond the sentence."""

from collections.abc import Iterator


def cut_into_blocks(lines: dict[str, list[str]], documents: list[int], words: int) -> dict[str, list[list[str]]]:
    """Join as many sentences of one document as fit into ``words`` words in every language.

    A longer sentence is a block of its own.

    Parameters
    ----------
    lines : dict of lists of str
        Aligned sentences by language.
    documents : list of int
        The document of each sentence; sentences of a document follow each other.
    words : int
        Words that a block may have in any language.

    Returns
    -------
    dict of lists of lists of str
        The sentences of each block, by language.

    Raises
    ------
    ValueError
        If ``words`` is below 1, or ``documents`` and the lines differ in length.
    """
    if words < 1:
        raise ValueError(f"`words` must be at least 1, got {words}")
    for language, text in lines.items():
        if len(text) != len(documents):
            raise ValueError(
                f"`documents` must have one number per sentence, got {len(documents)} numbers for {len(text)} sentences "
                f"of {language}"
            )
    blocks = list(_blocks(lines, documents, words))
    return {language: [text[block] for block in blocks] for language, text in lines.items()}


def join_sentences(blocks: dict[str, list[list[str]]]) -> dict[str, list[str]]:
    """Return each block of :func:`cut_into_blocks` as one line."""
    return {language: [" ".join(sentences) for sentences in blocks[language]] for language in blocks}


def _blocks(lines: dict[str, list[str]], documents: list[int], words: int) -> Iterator[slice]:
    start, block_words = 0, dict.fromkeys(lines, 0)
    for place, document in enumerate(documents):
        sentence_words = {language: len(text[place].split()) for language, text in lines.items()}
        extended_words = {language: block_words[language] + sentence_words[language] for language in lines}
        if place > start and (document != documents[start] or max(extended_words.values()) > words):
            yield slice(start, place)
            start, extended_words = place, sentence_words
        block_words = extended_words
    if start < len(documents):
        yield slice(start, len(documents))
