"""Tables and charts of what models cost: FLOPs, bytes moved, cache, memory, training, time."""
