"""Tables of the READMEs, written from the files that runs left, so that no number is copied by hand."""
