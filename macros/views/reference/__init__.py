"""What the reference says of the project itself: coverage, claims checked, rooms, figures."""
