"""How the tests are run, in four plugins: which cases are taken, the site, Chromium, and what all of them share."""

pytest_plugins = "sharing", "serving", "chromium", "starting"  # in this order: the last one imports the others
