"""`@step`: makes a function a step of the trace. On real arrays it is the function itself.

This is NumPy's own idea of dispatch (NEP 18) for our functions: an argument that carries a `__tracer__` sees the call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps


def step(function: Callable | None = None, *, rule: Callable | None = None) -> Callable:
    """Record each call of `function` as one step, with everything it calls inside as its children.

    With `rule`, the function is one indivisible operation with data-dependent insides (a loop over the chosen experts):
    on shapes it is not run, and `rule(*args, **kwargs)` returns (output shape, multiply-adds) instead.
    """
    if function is None:
        return lambda f: step(f, rule=rule)

    @wraps(function)
    def wrapper(*args, **kwargs):
        tracer = tracer_of(args)
        if tracer is None:
            return function(*args, **kwargs)
        return tracer.call(function, args, kwargs, rule)

    wrapper.is_step = True
    return wrapper


def tracer_of(args: tuple):
    """The tracer that the first of `args` carries, or None."""
    for a in args:
        tracer = getattr(a, "__tracer__", None)
        if tracer is not None:
            return tracer
    return None
