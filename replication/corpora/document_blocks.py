"""Documents as lines: consecutive sentences joined into blocks, for translation beyond the sentence."""

from collections.abc import Iterator


def cut_into_blocks(lines: dict[str, list[str]], documents: list[int], words: int) -> dict[str, list[list[str]]]:
    """Aligned sentences of one document, as many as fit, so that no side of a block has more than ``words`` words.

    A sentence that is longer than that is a block of its own.

    Parameters
    ----------
    lines : sentences by language, aligned
    documents : the document of each sentence; those of a document follow each other

    Returns
    -------
    The sentences of each block, by language.

    Raises
    ------
    ValueError
        If ``words`` is below 1, or there are not as many documents as lines.
    """
    if words < 1:
        raise ValueError(f"words must be at least 1, got {words}")
    for language, text in lines.items():
        if len(text) != len(documents):
            raise ValueError(f"documents: {len(documents)} numbers for {len(text)} sentences of {language}")
    blocks = list(_blocks(lines, documents, words))
    return {language: [text[block] for block in blocks] for language, text in lines.items()}


def join_sentences(blocks: dict[str, list[list[str]]]) -> dict[str, list[str]]:
    """Blocks of :func:`cut_into_blocks`, each as one line."""
    return {language: [" ".join(block) for block in of_language] for language, of_language in blocks.items()}


def _blocks(lines: dict[str, list[str]], documents: list[int], words: int) -> Iterator[slice]:
    start, length = 0, dict.fromkeys(lines, 0)
    for place, document in enumerate(documents):
        words_of_sentence = {language: len(text[place].split()) for language, text in lines.items()}
        words_with_it = {language: length[language] + words_of_sentence[language] for language in lines}
        if place > start and (document != documents[start] or max(words_with_it.values()) > words):
            yield slice(start, place)
            start, words_with_it = place, words_of_sentence
        length = words_with_it
    if start < len(documents):
        yield slice(start, len(documents))
