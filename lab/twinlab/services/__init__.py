"""What the hosts can reach besides each other: packages, images, models."""
