"""Small models whose heads are far from uniform, and text for them."""

import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
MODELS = {
    "bert": lambda: BertModel(BertConfig(vocab_size=60, max_position_embeddings=64, **SIZES)),
    "gpt2": lambda: GPT2Model(GPT2Config(vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4)),
}


def made(name="bert", seed=0):
    """A model whose heads are far from uniform."""
    torch.manual_seed(seed)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.25)
    return model


def text(batches, size=10, seed=0, length=24):
    """Batches of sentences of which the first is padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        ids = torch.randint(5, 60, (size, length), generator=generator)
        mask = torch.ones_like(ids)
        mask[0, length // 2 :] = 0
        found.append({"input_ids": ids, "attention_mask": mask})
    return found


def output(model, inputs):
    """Return the last hidden states, without gradients."""
    with torch.no_grad():
        return model(**inputs).last_hidden_state
