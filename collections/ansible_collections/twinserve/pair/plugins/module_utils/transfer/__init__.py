"""Copies files of a model's cache from the head to one worker, over all rails at once. A job on the head.

Several rsync streams take batches from one queue, so that rails end together whatever their speed. A rail
that dies gives back what it had. Files grow beside the cache and are renamed when they are whole; links come
last.
"""
