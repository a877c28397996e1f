"""Tables of the READMEs, generated from the runs' files, so that no number is copied by hand."""
