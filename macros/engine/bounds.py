"""Limits on foreign input and on requests: the same in the command line and the browser."""

# Bytes of a file. The size is looked at before anything is read.
LARGEST_TEXT = 2**23  # what people write; the largest config.json in circulation has some hundred thousand
LARGEST_TOKENIZER = 2**26  # Gemma's has 33 million
LARGEST_INDEX = 2**27  # a list of a checkpoint's tensors, in a file of its own
LARGEST_HEADER = 2**24  # and at the beginning of a file: a hundred thousand tensors, as many as the largest models have
LARGEST_PAGE = 2**26  # of a built site; the largest of this one has some million
LARGEST_ARRAY = 2**28  # a .npy file: a spectrogram has some million

DEEPEST = 64  # tables and lists in one another
MOST_DIGITS = 4300  # of a whole number, as Python has it: what takes more is slow to read
MOST_AXES = 64  # of an array, as NumPy has it
LARGEST_OFFSET = 2**63 - 1  # bytes into a file, or rows of an array

# What a library of somebody else's may take that reads one of them: bytes of memory, and seconds.
MOST_MEMORY, MOST_SECONDS = 2**32, 60

# What figures are asked for.
MOST_TOKENS, MOST_TEXTS, MOST_DEVICES = 10**9 - 1, 10**9 - 1, 65536
