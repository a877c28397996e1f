"""Tiny translators of stock fairseq and of the plugin with the same weights."""

from argparse import Namespace

import torch
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture

from replication.translation.fairseq.transformer import SparseTransformer, sparse_transformer


def settings(**changes) -> Namespace:
    sizes = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in {"embed_dim": 32, "layers": 2, "attention_heads": 4, "ffn_embed_dim": 48}.items()
    }
    return Namespace(**sizes, share_all_embeddings=True, dropout=0.0, attention_dropout=0.0, **changes)


def stock_and_ours(task, **changes):
    args = settings()
    base_architecture(args)
    torch.manual_seed(3)
    stock = TransformerModel.build_model(args, task)
    args = settings(**{"attention_normalizer": "softmax"} | changes)
    sparse_transformer(args)
    ours = SparseTransformer.build_model(args, task)
    alphas = {name: x for name, x in ours.state_dict().items() if name.endswith("pre_alpha")}
    ours.load_state_dict(stock.state_dict() | alphas)
    return stock, ours


def logits(model, batch, **arguments):
    return model(*batch, **arguments)[0]
