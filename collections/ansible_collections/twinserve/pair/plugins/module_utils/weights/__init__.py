"""Long work on weights: `python3 -m twinserve.weights fetch|take|verify`, each a job of systemd."""
