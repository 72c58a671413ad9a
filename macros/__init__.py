"""Every Parameter: where the numbers of a large language model come from.

    import every_parameter as ep
    ep.load("llama3-8b").parameters.total

Everything of the Python API is here by its name, and is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .api import one_package

if TYPE_CHECKING:
    from .api.bills import TokenBill, bill
    from .api.catalogue import models
    from .api.choices import Choices
    from .api.comparison import Comparison, compare
    from .api.deployments import Served, as_printed
    from .api.engines import EngineFit
    from .api.fits import Fit, fits
    from .api.logs import LogReading, read_log
    from .api.model import Formula, Model, load
    from .api.offloading import Offloaded, offload
    from .api.parallel import splits, traffic
    from .api.parameters import Parameters
    from .api.pictures import Picture
    from .api.running import Prediction, run
    from .api.sharing import Speculative, shared_prefix, speculative
    from .api.tables import Quantity, Table
    from .api.training import Training, train
    from .engine.errors import Problem

_PLACES = {
    "api.catalogue": ("models",),
    "api.choices": ("Choices",),
    "api.comparison": ("Comparison", "compare"),
    "api.deployments": ("Served", "as_printed"),
    "api.engines": ("EngineFit",),
    "api.fits": ("Fit", "fits"),
    "api.logs": ("LogReading", "read_log"),
    "api.model": ("Formula", "Model", "load"),
    "api.offloading": ("Offloaded", "offload"),
    "api.parallel": ("splits", "traffic"),
    "api.parameters": ("Parameters",),
    "api.pictures": ("Picture",),
    "api.running": ("Prediction", "run"),
    "api.bills": ("TokenBill", "bill"),
    "api.sharing": ("Speculative", "shared_prefix", "speculative"),
    "api.tables": ("Quantity", "Table"),
    "api.training": ("Training", "train"),
    "engine.errors": ("Problem",),
}

__all__ = [
    "load",
    "models",
    "compare",
    "fits",
    "read_log",
    "splits",
    "traffic",
    "offload",
    "shared_prefix",
    "speculative",
    "train",
    "as_printed",
    "run",
    "Model",
    "Parameters",
    "Formula",
    "Picture",
    "Quantity",
    "Table",
    "Comparison",
    "Choices",
    "Fit",
    "EngineFit",
    "Served",
    "LogReading",
    "Offloaded",
    "Speculative",
    "Training",
    "Prediction",
    "Problem",
]

one_package.share(__name__)


def __getattr__(name: str) -> Any:
    """A name of the API, from where it is defined; nothing is kept here, so that the live preview may renew it."""
    for place, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{place}"), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("every-parameter")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def define_env(env):
    """Register the macros of the pages (mkdocs-macros calls this, and the functions below)."""
    from .site.page_macros import register

    register(env)


def on_pre_page_macros(env):
    """Before the macros of a page run."""
    from .site.page_macros import prepare

    prepare(env)


def on_post_page_macros(env):
    """After the macros of a page have run."""
    from .site.page_macros import note

    note(env)


def on_post_build(env):
    """When every page is written."""
    from .site.page_macros import finish

    finish(env)
