"""The simulated pair: its networks, machines, services and verbs.  Standard library only."""
