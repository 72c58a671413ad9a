"""The forward pass as a reader follows it: layers, parts, operations in their order, the walkthrough."""
