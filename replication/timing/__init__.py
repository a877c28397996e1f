"""Time and memory of attention: the clock, the timed attentions, and growth with the sequence length."""
