"""Tiny Hugging Face models with heads far from uniform, a batch for each, and two graphs to restrict them to."""

from typing import NamedTuple

import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    MarianConfig,
    MarianModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
)

from sparselib.dense_attention import gold_graph

HEADS, LENGTH, PADDED = 4, 9, 6
BOTH = {"vocab_size": 50, "max_position_embeddings": 40}
SIZES = BOTH | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": 32}
MARIAN = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
          {"layers": 2, "attention_heads": HEADS, "ffn_dim": 32}.items()}  # fmt: skip
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": HEADS, "bos_token_id": 0, "eos_token_id": 0}
MODELS = {
    "roberta": lambda: RobertaModel(RobertaConfig(**SIZES)),
    "bert": lambda: BertModel(BertConfig(**SIZES)),
    "gpt2": lambda: GPT2Model(GPT2Config(vocab_size=50, n_positions=40, **GPT2)),
    "llama": lambda: LlamaModel(LlamaConfig(**SIZES, num_key_value_heads=2)),
    "marian": lambda: MarianModel(MarianConfig(**BOTH, **MARIAN, d_model=32, pad_token_id=1, decoder_start_token_id=0)),
}
CAUSAL = ("gpt2", "llama")


class Case(NamedTuple):
    model: PreTrainedModel
    inputs: dict[str, Tensor]

    def __call__(self, **extra) -> Tensor:
        """Hidden states at real positions."""
        with torch.no_grad():
            hidden = self.model(**self.inputs, **extra).last_hidden_state
        return hidden[self.inputs.get("decoder_attention_mask", self.inputs["attention_mask"]).bool()]

    def attentions(self) -> list[Tensor]:
        """The weights of every layer, in the order in which the layers are called."""
        with torch.no_grad():
            found = self.model(**self.inputs, output_attentions=True)
        if not self.model.config.is_encoder_decoder:
            return list(found.attentions)
        pairs = zip(found.decoder_attentions, found.cross_attentions, strict=True)
        return [*found.encoder_attentions, *(weights for pair in pairs for weights in pair)]


def make(name: str, padding: str = "right") -> Case:
    """A model with weights large enough that heads are far from uniform, and a batch with a padded sentence."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    ids = torch.randint(5, 50, (2, LENGTH))
    mask = torch.ones_like(ids)
    mask[1, PADDED:] = 0
    if padding == "left":
        mask = mask.flip(1)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if model.config.is_encoder_decoder:
        inputs |= {"decoder_input_ids": ids[:, 1:-1], "decoder_attention_mask": mask[:, 1:-1]}
    model.set_attn_implementation("eager")
    return Case(model, inputs)


def gold(call):
    return gold_graph(call.q, call.k, call.visible)


def diagonal(call):
    return torch.eye(call.q.shape[2], call.k.shape[2], dtype=torch.bool).expand_as(call.visible)
