"""Limits on foreign input and on requests, shared by the command line and the browser."""

# Bytes of a file. The size is checked before anything is read.
LARGEST_TEXT = 2**23  # hand-written files; the largest published config.json has a few hundred thousand
LARGEST_TOKENIZER = 2**26  # Gemma's has 33 million
LARGEST_INDEX = 2**27  # a list of a checkpoint's tensors, in a separate file
LARGEST_HEADER = 2**24  # the header of a file: a hundred thousand tensors, as in the largest models
LARGEST_PAGE = 2**26  # a page of a built site; the largest page of this site has a few million
LARGEST_ARRAY = 2**28  # a .npy file: a spectrogram has a few million

DEEPEST = 64  # nesting depth of tables and lists
MOST_DIGITS = 4300  # digits of an integer, as in Python: longer ones are slow to parse
MOST_AXES = 64  # axes of an array, as in NumPy
LARGEST_OFFSET = 2**63 - 1  # bytes into a file, or rows of an array

# Limits for third-party libraries that read such a file: bytes of memory, and seconds.
MOST_MEMORY, MOST_SECONDS = 2**32, 60

# Limits of requested figures.
MOST_TOKENS, MOST_TEXTS, MOST_DEVICES = 10**9 - 1, 10**9 - 1, 65536
