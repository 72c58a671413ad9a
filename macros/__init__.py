"""Every Parameter: where the numbers of a large language model come from."""


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
