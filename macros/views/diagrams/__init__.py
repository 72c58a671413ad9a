"""Diagrams of the data flow: the graph, the positions of its boxes, the drawing."""
