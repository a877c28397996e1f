"""Documents as blocks of subword ids, with each subword's gold tag and coreference chain.

Tokenizers are imported by the functions that need them: later stages read blocks without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from replication.corpora.documents import Document
from replication.files.contents import check_tensors
from replication.files.manifest import add_output
from replication.files.paths import located
from replication.files.storage import FormatError, read_tensors, replacing, write_tensors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

#: Kind of a file of blocks, in its header.
KIND = "tokens"
SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def train_tokenizer(documents: Iterable[Document], vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer like RoBERTa's on documents."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaTokenizerFast

    bpe = ByteLevelBPETokenizer(add_prefix_space=True)
    lines = (" ".join(sentence.words) for document in documents for sentence in document.sentences)
    bpe.train_from_iterator(lines, vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, show_progress=False)
    return RobertaTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        add_prefix_space=True,
        **dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), SPECIAL_TOKENS, strict=True)),
    )


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerFast:
    """Load a pretrained tokenizer from the hub, a folder or a package.

    Raises
    ------
    FileNotFoundError
        If there is no tokenizer of that name.
    """
    from transformers import AutoTokenizer

    try:
        # Words are passed one by one, so the tokenizer must add the spaces between them.
        return AutoTokenizer.from_pretrained(located(str(name)), add_prefix_space=True)
    except OSError as error:
        raise FileNotFoundError(f"{name}: no tokenizer in that folder or on the hub ({error})") from error


def encode_blocks(
    documents: Iterable[Document], tokenizer: PreTrainedTokenizerFast, length: int
) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Encode documents as one stream and cut it into blocks ``<s> ... </s>`` of ``length`` tokens, without the tail.

    Returns
    -------
    tensors : dict of Tensor ``[N, length]``
        ``input_ids``, ``tags`` and ``chains``. Each subword has its word's tag and chain, or -1 if there is none. Chain
        numbers are unique over the whole stream. If the corpus has tags but no chains, the occurrences of a noun form that a
        document repeats are a chain.
    header : dict
        ``tag_names`` in the order of their numbers, ``length``, and ``chain_source``: ``gold``, ``repeated nouns`` or
        ``none``; the first two where documents differ.

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
        # Words such as <mask> are text, not the special tokens of the same name.
        encoding = tokenizer(
            words, is_split_into_words=True, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        word_of_subword = np.array(encoding.word_ids())
        ids.append(np.array(encoding["input_ids"], dtype=np.int32))
        numbers = np.array([names.setdefault(tag, len(names)) if tag else -1 for tag in word_tags], dtype=np.int16)
        tags.append(numbers[word_of_subword])
        word_chains = np.array(document_chains, dtype=np.int32)
        chains.append(np.where(word_chains < 0, -1, word_chains + next_chain)[word_of_subword])
        next_chain += int(word_chains.max(initial=-1)) + 1
    stream = {"input_ids": ids, "tags": tags, "chains": chains}
    blocks = {
        name: _cut(np.concatenate(parts or [np.zeros(0, np.int32)]), length - 2) for name, parts in stream.items()
    }
    if len(blocks["input_ids"]) == 0:
        raise ValueError(
            f"`documents` must have at least {length - 2} tokens for one sequence of length {length}, "
            f"got {sum(map(len, ids))} tokens"
        )
    # BERT has no bos and eos token; its [CLS] and [SEP] take their place.
    first = tokenizer.cls_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    last = tokenizer.sep_token_id if tokenizer.eos_token_id is None else tokenizer.eos_token_id
    edges = {"input_ids": (first, last), "tags": (-1, -1), "chains": (-1, -1)}
    tensors = {
        name: torch.from_numpy(np.pad(block, ((0, 0), (1, 1)), constant_values=(edges[name],)))
        for name, block in blocks.items()
    }
    # Documents differ: some have gold chains, and a short one may have no noun.
    source = ", ".join(sorted(sources - {"none"})) or "none"
    return tensors, {"tag_names": list(names), "chain_source": source, "length": length}


def write_blocks(path: str | Path, tensors: dict[str, Tensor], header: dict[str, object]) -> None:
    """Write the blocks of :func:`encode_blocks` to a safetensors file."""
    write_tensors(path, tensors, kind=KIND, **header)


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: str | Path) -> None:
    """Save a tokenizer's files in a folder; ``tokenizer.json`` is written last, and atomically."""
    folder = Path(folder)
    tokenizer.save_pretrained(folder)
    with replacing(folder / "tokenizer.json") as temporary:
        tokenizer.backend_tokenizer.save(str(temporary))
    add_output(folder / "tokenizer_config.json")


def _cut(stream: np.ndarray, length: int) -> np.ndarray:
    return stream[: len(stream) // length * length].reshape(-1, length)


def _chains(document: Document) -> tuple[list[int], str]:
    """Return each word's chain number within the document, and the origin of the chains."""
    if any(sentence.chains for sentence in document.sentences):
        return [c for s in document.sentences for c in (s.chains or [-1] * len(s.words))], "gold"
    nouns = list(_nouns(document))
    counts = Counter(noun for noun in nouns if noun)
    numbers = {noun: number for number, noun in enumerate(n for n, count in counts.items() if count > 1)}
    return [numbers.get(noun, -1) for noun in nouns], "repeated nouns" if any(nouns) else "none"


def _nouns(document: Document) -> Iterator[str]:
    """Yield each noun as it is, and an empty string for any other word."""
    for sentence in document.sentences:
        for word, tag in zip(sentence.words, sentence.tags or [""] * len(sentence.words), strict=True):
            yield word if tag in ("NOUN", "PROPN") else ""


def read_tokens(path: str | Path) -> dict[str, Tensor]:
    """Read a file of :func:`write_blocks`.

    Raises
    ------
    FormatError
        If it lacks the token ids, or a tensor has another shape.
    """
    tensors = read_tensors(path, kind=KIND)
    check_tensors(path, tensors, {"input_ids": 2} | dict.fromkeys(tensors, 2))
    for name, numbers in tensors.items():
        if numbers.is_floating_point() or numbers.shape != tensors["input_ids"].shape:
            raise FormatError(
                f"{path}: {name} must have a whole number for each token {list(tensors['input_ids'].shape)}, got"
                f" {numbers.dtype} {list(numbers.shape)}"
            )
    return tensors
