"""How far the random tests look: the same few cases at each run; in `.ci/run`, many new ones."""

import os
import sys

from hypothesis import HealthCheck, settings
from sampling import CI, WHOLE

# A change's nearest tests look further; the workers are told by the variable, since they have no arguments.
if "--affected" in sys.argv:
    os.environ["MORE_EXAMPLES"] = "yes"
FIRST, MORE = 100 if CI else 40 if os.environ.get("MORE_EXAMPLES") else 10, CI or "MORE_EXAMPLES" in os.environ

# A machine may be busy: neither a deadline nor a draw that takes long is a failure.
settings.register_profile(
    "every parameter",
    max_examples=FIRST,
    derandomize=not CI,
    print_blob=CI,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("every parameter")


def examples(n: int, is_far: bool = False) -> settings:
    """A third of so many random cases, and twice as many in `.ci/run`, instead of ten and a hundred; of what is far
    from the change a third everywhere."""
    is_few = not MORE or is_far and not WHOLE
    return settings(max_examples=-(-n // 3) if is_few else n * 2 if CI else n)
