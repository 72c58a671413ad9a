"""Every Parameter: where the numbers of a large language model come from."""


def define_env(env):
    """Register the macros of the pages (mkdocs-macros calls this)."""
    from .site.registry import register

    register(env)
