"""Encoders that a masked language model can start from, by their `model_type`, and the name of each in tables.

transformers has a masked-LM head for each, :func:`sparselib.huggingface.use_attention` is exact for it, and queries and keys
give its scores. A test compares the list with the published table of architectures.
"""

ENCODERS = {
    "albert": "ALBERT",
    "bert": "BERT",
    "camembert": "CamemBERT",
    "data2vec-text": "data2vec",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "ernie": "ERNIE",
    "esmc": "ESM C",
    "eurobert": "EuroBERT",
    "gte": "GTE",
    "jina_embeddings_v3": "Jina Embeddings v3",
    "layoutlm": "LayoutLM",
    "mobilebert": "MobileBERT",
    "modernbert": "ModernBERT",
    "nomic_bert": "NomicBERT",
    "roberta": "RoBERTa",
    "roberta-prelayernorm": "RoBERTa-PreLayerNorm",
    "roc_bert": "RoCBert",
    "ultrabert": "UltraBERT",
    "xlm-roberta": "XLM-RoBERTa",
    "xlm-roberta-xl": "XLM-RoBERTa-XL",
}
