"""The HTTP API: one module a route, one for what they share."""
