"""Measurements in the lab, as ratios inside one run. `make bench`."""
