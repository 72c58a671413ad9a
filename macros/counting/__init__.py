"""From a trace to integers and polynomials: parameters, FLOPs, bytes, memory, bounds. Depends only on the engine."""
