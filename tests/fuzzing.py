"""How far the random tests look: the same few cases at each run; in `.ci/run`, many new ones."""

from hypothesis import HealthCheck, settings
from sampling import CI

# A machine may be busy: neither a deadline nor a draw that takes long is a failure.
settings.register_profile(
    "every parameter",
    max_examples=100 if CI else 10,
    derandomize=not CI,
    print_blob=CI,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("every parameter")


def examples(n: int) -> settings:
    """A third of so many random cases, and twice as many in `.ci/run`, instead of ten and a hundred."""
    return settings(max_examples=n * 2 if CI else -(-n // 3))
