"""Tables and charts of the costs of models: FLOPs, bytes moved, cache, memory, training, time."""
