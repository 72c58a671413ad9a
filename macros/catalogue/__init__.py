"""Facts about models: the presets’ reader, the checks, reference tensor lists, published costs."""
