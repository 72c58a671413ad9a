"""Diagrams of the data flow: the graph, the places of its boxes, the drawing."""
