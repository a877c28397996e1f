"""Blocks of subword ids on disk: what the tokens stage writes and all later ones read, without a tokenizer."""

#: Kind of file, as :mod:`replication.files.storage` records it.
KIND = "tokens"
