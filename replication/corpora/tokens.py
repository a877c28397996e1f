"""From documents to blocks of subword ids, with each subword's gold tag and coreference chain beside it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import ByteLevelBPETokenizer
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerFast, RobertaTokenizerFast

from replication.corpora.blocks import KIND
from replication.corpora.documents import Document
from replication.files.paths import located
from replication.files.seals import seal
from replication.files.storage import replacing, write_tensors

SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def train_tokenizer(documents: Iterable[Document], vocab_size: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE like RoBERTa's, learned from ``documents``."""
    bpe = ByteLevelBPETokenizer(add_prefix_space=True)
    lines = (" ".join(sentence.words) for document in documents for sentence in document.sentences)
    bpe.train_from_iterator(lines, vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, show_progress=False)
    return RobertaTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        add_prefix_space=True,
        **dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), SPECIAL_TOKENS, strict=True)),
    )


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerFast:
    """A pretrained tokenizer from the hub, a folder or a package; words come one by one, so it must put the spaces in."""
    try:
        return AutoTokenizer.from_pretrained(located(str(name)), add_prefix_space=True)
    except OSError as error:
        raise FileNotFoundError(f"{name}: no tokenizer there, nor on the hub ({error})") from error


def encode_blocks(
    documents: Iterable[Document], tokenizer: PreTrainedTokenizerFast, length: int
) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Encode documents as one stream and cut it into blocks ``<s> ... </s>`` of ``length`` tokens; the tail is dropped.

    Returns
    -------
    tensors
        ``input_ids``, ``tags`` and ``chains``, each ``[N, length]``. A word's tag and chain are copied to all its subwords;
        -1 stands for none. Chain numbers are unique over the whole stream. Where the corpus
        has tags but no chains, the words of a document that recur as a noun with the same form stand in for chains.
    header
        ``tag_names`` in the order of their numbers, and ``chain_source``: ``gold``, ``repeated nouns`` or ``none``.

    Raises
    ------
    ValueError
        If the text is shorter than one block.
    """
    ids, tags, chains = [], [], []
    names: dict[str, int] = {}
    sources: set[str] = set()
    next_chain = 0
    for document in documents:
        if not document.sentences:
            continue
        document_chains, source = _chains(document)
        sources.add(source)
        words = [word for sentence in document.sentences for word in sentence.words]
        word_tags = [tag for s in document.sentences for tag in (s.tags or [""] * len(s.words))]
        encoding = tokenizer(words, is_split_into_words=True, add_special_tokens=False, verbose=False)
        of_word = np.array(encoding.word_ids())
        ids.append(np.array(encoding["input_ids"], dtype=np.int32))
        numbers = np.array([names.setdefault(tag, len(names)) if tag else -1 for tag in word_tags], dtype=np.int16)
        tags.append(numbers[of_word])
        chain_of_word = np.array(document_chains, dtype=np.int32)
        chains.append(np.where(chain_of_word < 0, -1, chain_of_word + next_chain)[of_word])
        next_chain += int(chain_of_word.max(initial=-1)) + 1
    stream = {"input_ids": ids, "tags": tags, "chains": chains}
    blocks = {
        name: _cut(np.concatenate(parts or [np.zeros(0, np.int32)]), length - 2) for name, parts in stream.items()
    }
    if len(blocks["input_ids"]) == 0:
        raise ValueError(f"the text has {sum(map(len, ids))} tokens, one sequence of {length} needs {length - 2}")
    # BERT calls its own [CLS] and [SEP].
    first = tokenizer.cls_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    last = tokenizer.sep_token_id if tokenizer.eos_token_id is None else tokenizer.eos_token_id
    edges = {"input_ids": (first, last), "tags": (-1, -1), "chains": (-1, -1)}
    tensors = {
        name: torch.from_numpy(np.pad(block, ((0, 0), (1, 1)), constant_values=(edges[name],)))
        for name, block in blocks.items()
    }
    source = next(s for s in ("gold", "repeated nouns", "none") if s in sources)
    return tensors, {"tag_names": list(names), "chain_source": source, "length": length}


def write_blocks(path: str | Path, tensors: dict[str, Tensor], header: dict[str, object]) -> None:
    write_tensors(path, tensors, kind=KIND, **header)


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: str | Path) -> None:
    """Save the tokenizer's files into ``folder``; its ``tokenizer.json`` comes last and only when it is whole."""
    folder = Path(folder)
    tokenizer.save_pretrained(folder)
    with replacing(folder / "tokenizer.json") as temporary:
        tokenizer.backend_tokenizer.save(str(temporary))
    seal(folder / "tokenizer_config.json")


def _cut(stream: np.ndarray, length: int) -> np.ndarray:
    return stream[: len(stream) // length * length].reshape(-1, length)


def _chains(document: Document) -> tuple[list[int], str]:
    """Each word's chain number within the document, and where the chains come from."""
    if any(sentence.chains for sentence in document.sentences):
        return [c for s in document.sentences for c in (s.chains or [-1] * len(s.words))], "gold"
    nouns = list(_nouns(document))
    counts = Counter(noun for noun in nouns if noun)
    numbers = {noun: number for number, noun in enumerate(n for n, count in counts.items() if count > 1)}
    return [numbers.get(noun, -1) for noun in nouns], "repeated nouns" if any(nouns) else "none"


def _nouns(document: Document) -> Iterator[str]:
    for sentence in document.sentences:
        for word, tag in zip(sentence.words, sentence.tags or [""] * len(sentence.words), strict=True):
            yield word if tag in ("NOUN", "PROPN") else ""
