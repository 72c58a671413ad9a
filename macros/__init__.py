"""Every Parameter: where the numbers of a large language model come from."""


def define_env(env):
    """Register the macros of the pages (mkdocs-macros calls this)."""
    from .site.page_macros import register

    register(env)


def on_pre_page_macros(env):
    """Before the macros of a page run (mkdocs-macros calls this)."""
    from .site.page_macros import prepare

    prepare(env)
