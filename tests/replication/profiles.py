"""Sections of the smallest configurations with which every stage runs in a moment."""

#: Short books of the Bible: 1,462 words to train on, and about 340 each for validation and test.
TEXT = {"source": "bible", "train": ["Jonah"], "valid": ["2 John"]}
GRID = {
    "window": {"predictor": "Nothing"},
    "distance": {"predictor": "Distance", "threshold": [0.5, 2.0]},
    "kmeans": {"predictor": "Clustering", "clusters": [2, 3]},
    "routing": {"predictor": "Routing", "clusters": 2},
    "bigbird": {"predictor": "BigBird", "random_keys": 2},
}
PROJECTION = {"dimension": 3, "loss": "triplet", "margin": 1.0, "learning_rate": 0.01, "batch_size": 4, "epochs": 1}
ENCODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}

MASKED_LM = {
    "corpus": TEXT,
    "unseen": {},
    "tokenizer": {"vocab_size": 300},
    "length": 16,
    "layers": 2,
    "model": ENCODER,
    "training": {
        "mask_probability": 0.3,
        "max_steps": 5,
        "per_device_train_batch_size": 4,
        "learning_rate": 0.003,
        "logging_steps": 1,
        "save_steps": 5,
    },
    "evaluation": {"mask_probability": 0.3, "seed": 0, "batch_size": 8, "sequences": 6},
    "graphs": {"train": 8, "valid": 6},
    "projection": PROJECTION,
    "cluster_points": 100,
    "tag_clusters": 2,
    "global_tokens": "first_last",
    "windows": [0, 3],
    "methods": GRID,
    "replaced": {"windows": [0, 3], "methods": GRID},
    "blocks": {
        "sizes": [2, 4],
        "counts": [1, 9],
        "clusters": [2],
        "pooling": "concatenate",
        "metric": "sq_euclidean",
        "repeats": 2,
    },
}

ARCHITECTURE = {
    f"{side}_{key}": size
    for side in ("encoder", "decoder")
    for key, size in {"layers": 1, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}.items()
}
FAIRSEQ = {"lr": 0.01, "warmup_updates": 1, "max_tokens": 400, "max_update": 2, "dropout": 0.0, "log_interval": 1}
TRANSLATOR = {
    "corpus": {"grc-en": TEXT | {"train": ["Philemon"], "test": ["3 John"]}},
    "words": "spaces",
    "merges": 20,
    "architecture": ARCHITECTURE,
    "training": FAIRSEQ,
}
TRANSLATION = TRANSLATOR | {
    "training": FAIRSEQ | {"attention_normalizer": "entmax15", "coword_dropout": 0.0},
    "decoding": {"beam": 1, "sentences": 4},
    "graphs": {"train": 8, "valid": 4, "longer_than": 3},
    "projection": PROJECTION,
    "cluster_points": 100,
    "global_tokens": "first",
    "windows": [0, 3],
    "methods": GRID,
    "replaced": {"windows": [0, 3], "methods": GRID},
}
FORMS = {
    "sentences": TRANSLATOR
    | {
        "beam": 1,
        "runs": [{"forms": ["Full", "Top-k"], "budgets": [2], "seeds": [0]}],
        "models_per_job": 2,
    }
}
NORMALIZER_SPEED = TRANSLATOR | {"top_k": 2, "repeats": 1, "beam": 1, "batch": 4}

MATRIX = {"architecture": "matrix_transformer", "length": 16, "width": 4}
PATTERNS = {
    "text": {
        "corpora": {"toy": TEXT | {"test": ["3 John"]}},
        "rows": {"train": 2, "valid": 2, "test": 2},
        "recipe": {
            "steps": 2,
            "length": 16,
            "learning_rate": 0.01,
            "warmup_steps": 1,
            "clip_norm": 1.0,
            "log_every": 1,
        },
        "seeds": [0],
        "timed_steps": 1,
        "sizes": {"layers": 1, "dimension": 8, "heads": 2, "inner": 8, "dropout": 0.0},
        "models": {
            "dense": MATRIX,
            "strided": MATRIX | {"factorised": {"pattern": "strided", "stride": 4, "heads": "interleaved"}},
            "fixed": MATRIX | {"factorised": {"pattern": "fixed", "stride": 4, "summary": 1, "heads": "interleaved"}},
        },
    }
}

CAPTIONING = {
    "source": {"source": "scenes", "images": {"train": 12, "test": 4}, "seed": 0},
    "limits": {"word_count": 1, "caption_words": 12, "regions": 36},
    "architecture": {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 16,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
    },
    "training": {
        "max_steps": 2,
        "per_device_train_batch_size": 4,
        "learning_rate": 0.002,
        "logging_steps": 1,
        "save_steps": 2,
    },
    "seeds": [0],
    "models": {"softmax": {}, "top-2": {"top_k": 2}},
    "decoding": {"beam": 1, "batch_size": 4},
    "shown": 1,
}

SCALING = {
    "lengths": [64],
    "densities": [0.5],
    "heads": 1,
    "dimension": 16,
    "block": 16,
    "repeats": 1,
    "predictor": {"clusters": 2, "count": 1},
}

RETROFIT = {
    "model": "masked_lm",
    "corpus": TEXT | {"train": ["Titus"]},
    "length": 16,
    "alpha": 1.5,
    "gold": "entmax:1.5",
    "batch_size": 8,
    "block": 4,
    "window": 1,
    "recalls": [0.5],
    "confidence": 0.5,
    "sequences": {"learn": 4, "calibrate": 24, "held_out": 4},
    "students": {
        "dimension": 2,
        "gate_dimension": 2,
        "epochs": 1,
        "gate_epochs": 1,
        "learning_rate": 0.01,
        "points": 60,
    },
    "rules": {
        "sparsefinder-distance": {"predictor": "Distance", "threshold": [0.5, 2.0]},
        "quest": {"predictor": "Quest", "count": 1},
    },
}

SECTIONS = {
    "masked_lm": MASKED_LM,
    "translation": TRANSLATION,
    "patterns": PATTERNS,
    "captioning": CAPTIONING,
    "forms": FORMS,
    "scaling": SCALING,
    "normalizer_speed": NORMALIZER_SPEED,
    "retrofit": RETROFIT,
}
