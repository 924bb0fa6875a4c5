"""The node agent: what one rank reports and does when the pair's supervisor asks (`twinserve-rank VERB`)."""
