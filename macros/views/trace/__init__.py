"""The forward pass as readers follow it: layers, parts, operations in order, the walkthrough."""
