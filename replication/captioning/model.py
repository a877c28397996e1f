"""Captioner: BART with image regions as input, and softmax over all keys or the k largest scores."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration, set_seed
from transformers.modeling_outputs import Seq2SeqLMOutput

from replication.captioning.batches import BEGIN, END, PAD, UNKNOWN
from sparselib.checks import at_least
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax, topk_softmax


class Captioner(BartForConditionalGeneration):
    """BART whose encoder reads an image's regions, float ``[B, R, F]``, through one linear layer."""

    def __init__(self, config: BartConfig):
        super().__init__(config)
        self.regions = nn.Linear(config.region_width, config.d_model)
        self.post_init()

    def describe(self, regions: Tensor, real: Tensor, labels: Tensor, **others: object) -> Seq2SeqLMOutput:
        """Return loss and logits with teacher forcing.

        Parameters
        ----------
        regions : float Tensor ``[B, R, F]``
        real : Bool Tensor ``[B, R]``
            False for padding.
        labels : integer Tensor ``[B, T]``
            Word ids, -100 behind the end.
        others
            To the model, such as ``output_attentions``.
        """
        return self(inputs_embeds=self.regions(regions), attention_mask=real, labels=labels, **others)

    @torch.no_grad()
    def search(self, regions: Tensor, real: Tensor, beam: int, longest: int) -> Tensor:
        """Return the word ids of the best hypothesis of a beam search for each image, ``[B, T]``."""
        return self.generate(
            inputs_embeds=self.regions(regions),
            attention_mask=real,
            num_beams=beam,
            max_new_tokens=longest + 1,
            suppress_tokens=[PAD, BEGIN, UNKNOWN],
            do_sample=False,
        )


def build_model(
    words: int,
    *,
    region_count: int,
    region_width: int,
    longest: int,
    top_k: int | None,
    seed: int,
    **architecture: object,
) -> Captioner:
    """Build a captioner with random weights.

    Parameters
    ----------
    words : int
        Size of the vocabulary.
    region_count, region_width : int
        Largest number of regions of an image, and features of each.
    longest : int
        Words of the longest caption.
    top_k : int, optional
        Keys that each query attends to, in all three kinds of attention; None for softmax over all keys.
    seed : int
        Seed of the weights.
    architecture
        Sizes, as arguments of ``BartConfig``.

    Raises
    ------
    ValueError
        If ``top_k`` is below 1.
    """
    if top_k is not None:
        at_least("top_k", top_k, 1)
    set_seed(seed)
    config = BartConfig(
        vocab_size=words,
        max_position_embeddings=max(region_count, longest + 2),
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        forced_eos_token_id=None,
        region_count=region_count,
        region_width=region_width,
        # Without the prefix, transformers would take it for an option of generation.
        attention_top_k=top_k,
        **architecture,
    )
    return _with_attention(Captioner(config))


def load_model(folder: Path) -> Captioner:
    """Load a trained captioner in evaluation mode, onto the accelerator if there is one."""
    model = _with_attention(Captioner.from_pretrained(folder))
    return model.to(torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu").eval()


def _with_attention(model: Captioner) -> Captioner:
    """Set the normalizer that the model's configuration names."""
    top_k, width = model.config.attention_top_k, model.config.d_model
    probe_inputs = {
        "inputs_embeds": torch.linspace(-1, 1, 2 * width).view(1, 2, width),
        "decoder_input_ids": torch.tensor([[BEGIN]]),
    }
    use_attention(model, Entmax(1) if top_k is None else partial(topk_softmax, k=top_k), probe_inputs)
    return model


def settings_of(model: Mapping[str, object]) -> int | None:
    """Return the k of a model's section in the configuration, or None for softmax.

    Raises
    ------
    ValueError
        If the section has another key.
    """
    if unknown := model.keys() - {"top_k"}:
        raise ValueError(f"`model` must have no key but top_k, got {', '.join(sorted(unknown))}")
    return model.get("top_k")
