"""How far the random tests look: the same cases at each run; in `.ci/run`, ten times as many new ones."""

import os

from hypothesis import HealthCheck, settings

CI = bool(os.environ.get("CI"))
TIMES = 10 if CI else 1

# A machine may be busy: neither a deadline nor a draw that takes long is a failure.
settings.register_profile(
    "every parameter",
    max_examples=100 * TIMES,
    derandomize=not CI,
    print_blob=CI,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("every parameter")


def examples(n: int) -> settings:
    """So many random cases, instead of a hundred."""
    return settings(max_examples=n * TIMES)
