"""How long attention takes: the clock, what is timed, and time and memory against the length of the sequence."""
