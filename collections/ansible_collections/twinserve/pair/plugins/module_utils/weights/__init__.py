"""Long work on weights: `python3 -m twinserve.weights fetch|verify`, each a job of systemd."""
