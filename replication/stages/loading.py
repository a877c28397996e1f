"""A trained masked language model and its text, as several stages load them."""

from pathlib import Path


def load_network(model: Path, tokenizer: Path):
    """The model, the control of its attention, and its tokenizer."""
    from replication.corpora.tokens import load_tokenizer
    from replication.masked_lm.model import load_entmax_model

    return *load_entmax_model(model), load_tokenizer(tokenizer)


def masked_text(tokens: Path, tokenizer, masking: dict):
    """The first sequences, with the places to predict."""
    from replication.corpora.blocks import KIND
    from replication.files.storage import read_tensors
    from replication.masked_lm.evaluation import mask_text

    input_ids = read_tensors(tokens, kind=KIND)["input_ids"][: masking["sequences"]]
    return mask_text(input_ids, tokenizer, masking["mask_probability"], masking["seed"])
