"""The patterns of Sparse Transformers, which depend on positions alone: nothing is measured for them."""

FIGURES["factorised/fig03_strided"] = []
FIGURES["factorised/fig05_fixed"] = []
FIGURES["factorised/reach"] = []
