"""What is known of models: the presets’ reader, the checks, reference tensor lists, published costs."""
