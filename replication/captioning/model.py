"""A transformer that describes images: BART with regions in place of words, and softmax over all keys or the k best."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration, set_seed
from transformers.modeling_outputs import Seq2SeqLMOutput

from replication.captioning.vocabulary import BEGIN, END, PAD, UNKNOWN
from replication.files.seals import verified
from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax, topk_softmax


class Captioner(BartForConditionalGeneration):
    """BART whose encoder reads the regions of an image, ``float [B, R, F]``, each through one linear layer."""

    def __init__(self, config: BartConfig):
        super().__init__(config)
        self.regions = nn.Linear(config.region_width, config.d_model)
        self.post_init()

    def describe(self, regions: Tensor, real: Tensor, labels: Tensor, **others: object) -> Seq2SeqLMOutput:
        """Teacher-forced: loss, logits, attentions if asked for. ``real``: Bool ``[B, R]``, which regions are no padding."""
        return self(inputs_embeds=self.regions(regions), attention_mask=real, labels=labels, **others)

    @torch.no_grad()
    def search(self, regions: Tensor, real: Tensor, beam: int, longest: int) -> Tensor:
        """Numbers of the words of the best hypothesis for each image, ``[B, T]``, from beam search."""
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
    """A captioner with random weights.

    Parameters
    ----------
    words : size of the vocabulary
    region_count, region_width : at most so many regions of an image, of so many features
    longest : words of a caption
    top_k : every query attends to so many keys, in all three kinds of attention; None: softmax over all
    architecture : to ``BartConfig``

    Raises ``ValueError`` if ``top_k`` is below 1.
    """
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k: {top_k} is below 1")
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
        # Without the prefix it would be an option of generation.
        attention_top_k=top_k,
        **architecture,
    )
    return _attending(Captioner(config))


def load_model(folder: Path) -> Captioner:
    """A trained captioner, ready to be evaluated, on the accelerator if there is one."""
    for file in ("config.json", "model.safetensors"):
        verified(folder / file)
    model = _attending(Captioner.from_pretrained(folder))
    return model.to(torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu").eval()


def _attending(model: Captioner) -> Captioner:
    top_k, width = model.config.attention_top_k, model.config.d_model
    tried = {
        "inputs_embeds": torch.linspace(-1, 1, 2 * width).view(1, 2, width),
        "decoder_input_ids": torch.tensor([[BEGIN]]),
    }
    use_attention(model, Entmax(1) if top_k is None else partial(topk_softmax, k=top_k), tried)
    return model


def settings_of(model: Mapping[str, object]) -> int | None:
    """The k of a section ``models`` of the configuration. Raises ``ValueError`` for another key."""
    if unknown := model.keys() - {"top_k"}:
        raise ValueError(f"model: {', '.join(sorted(unknown))} is unknown; top_k is what there is")
    return model.get("top_k")
