"""The gateway on the head: a web server with TLS and keys in front of the engine."""
