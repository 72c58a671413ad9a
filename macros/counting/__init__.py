"""From a trace to integers and polynomials: parameters, FLOPs, bytes, memory, bounds. Knows only the engine."""
